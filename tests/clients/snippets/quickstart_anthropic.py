import os
from anthropic import Anthropic

client = Anthropic(
    base_url=os.environ["GATEWAY_BASE_URL"].removesuffix("/v1"),  # this SDK adds /v1 itself
    api_key=os.environ["GATEWAY_WORKSPACE_KEY"],
)
message = client.messages.create(
    model="@anthropic/claude-sonnet-5", max_tokens=100, messages=[{"role": "user", "content": "Hello"}]
)
print(message.content[0].text)
