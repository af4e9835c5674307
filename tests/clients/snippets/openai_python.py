import os
from openai import OpenAI

client = OpenAI(
    base_url=os.environ["GATEWAY_BASE_URL"],
    api_key="sk-mock",  # the provider's own key
    default_headers={
        "x-gateway-api-key": os.environ["GATEWAY_WORKSPACE_KEY"],
        "x-gateway-provider": "openai",
        "x-gateway-custom-host": os.environ["MOCK_PROVIDER_URL"],  # leave out to reach OpenAI itself
    },
)
answer = client.chat.completions.create(
    model="gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}]
)
print(answer.choices[0].message.content)
