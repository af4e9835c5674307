import os
from langchain_openai import ChatOpenAI

chat = ChatOpenAI(
    base_url=os.environ["GATEWAY_BASE_URL"],
    api_key=os.environ["GATEWAY_WORKSPACE_KEY"],
    model="@openai/gpt-4o-mini",
)
print(chat.invoke("Hello").text)
