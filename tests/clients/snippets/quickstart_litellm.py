import os
from litellm import completion

answer = completion(
    model="openai/@openai/gpt-4o-mini",  # openai/ is LiteLLM's word for the format, @openai ours for the provider
    api_base=os.environ["GATEWAY_BASE_URL"],
    api_key=os.environ["GATEWAY_WORKSPACE_KEY"],
    messages=[{"role": "user", "content": "Hello"}],
)
print(answer.choices[0].message.content)
