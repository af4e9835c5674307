import os
from openai import OpenAI

client = OpenAI(
    base_url=os.environ["GATEWAY_BASE_URL"],
    api_key=os.environ["GATEWAY_WORKSPACE_KEY"],
)
answer = client.chat.completions.create(
    model="@openai/gpt-4o-mini", messages=[{"role": "user", "content": "Hello"}]
)
print(answer.choices[0].message.content)
