import os
from anthropic import Anthropic

client = Anthropic(
    base_url=os.environ["GATEWAY_BASE_URL"].removesuffix("/v1"),  # this SDK adds /v1 itself
    api_key="sk-ant-mock",  # the provider's own key
    default_headers={
        "x-gateway-api-key": os.environ["GATEWAY_WORKSPACE_KEY"],
        "x-gateway-provider": "anthropic",
        "x-gateway-custom-host": os.environ["MOCK_PROVIDER_URL"],  # leave out to reach Anthropic itself
    },
)
message = client.messages.create(
    model="claude-sonnet-5", max_tokens=100, messages=[{"role": "user", "content": "Hello"}]
)
print(message.content[0].text)
