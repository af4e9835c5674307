//! Which vendor answers at an endpoint; none where OpenAI or Anthropic do.

use super::bedrock::Bedrock;
use super::cohere::Cohere;
use super::gemini::Gemini;
use super::route::Endpoint;
use super::small_wires::SmallWires;
use super::vendors::Vendor;

pub fn vendor_at(endpoint: Endpoint) -> Option<&'static dyn Vendor> {
    match endpoint {
        Endpoint::GenerateContent | Endpoint::EmbedContent | Endpoint::CountContent | Endpoint::GeminiModels => {
            Some(&Gemini)
        }
        Endpoint::Converse | Endpoint::Invoke => Some(&Bedrock),
        Endpoint::CohereChat | Endpoint::CohereEmbed | Endpoint::CohereRerank => Some(&Cohere),
        Endpoint::SmallWire => Some(&SmallWires),
        _ => None,
    }
}
