//! What the bundled price list asks for each kind of call, read by this proof itself: what the gateway makes of the list is what
//! is to be proved.

use super::kinds::{DAY, Kind};
use super::shop::PRICE;
use crate::mock::Billed;
use anyhow::Context as _;
use serde_json::Value;

const LIST: &str = include_str!("../../../../conf/models/pricing/openai.json");

/// In cents per token.
#[derive(Debug, Clone, Copy)]
struct Rates {
    prompt: f64,
    completion: f64,
}

pub struct Tariff {
    chat: Rates,
    chat_batch: Rates,
    embedding: Rates,
    realtime: Rates,
}

impl Tariff {
    pub fn read() -> anyhow::Result<Self> {
        let list: Value = serde_json::from_str(LIST)?;
        Ok(Self {
            chat: rates(&list["gpt-4o-mini"]["pricing_config"]["pay_as_you_go"])?,
            chat_batch: rates(&list["gpt-4o-mini"]["pricing_config"]["batch_config"])?,
            embedding: rates(&list["text-embedding-3-small"]["pricing_config"]["pay_as_you_go"])?,
            realtime: rates(&list["gpt-4o-realtime-preview"]["pricing_config"]["pay_as_you_go"])?,
        })
    }

    /// In cents, of calls of one kind; `role` is of calls made for another.
    pub fn cents(&self, kind: &str, role: &str, billed: &Billed) -> f64 {
        let is = |one: Kind| kind == one.name();
        let rates = match role {
            "semantic_cache" => self.embedding,
            _ if is(Kind::Embedding) => self.embedding,
            _ if is(Kind::Realtime) => self.realtime,
            _ if is(Kind::Tool) => return billed.calls as f64 * PRICE,
            _ if kind == DAY => self.chat_batch,
            _ => self.chat,
        };
        billed.prompt as f64 * rates.prompt + billed.completion as f64 * rates.completion
    }
}

fn rates(listed: &Value) -> anyhow::Result<Rates> {
    let rate = |name: &str| {
        let price = listed[name]["price"].as_str().with_context(|| format!("no {name} in the list"))?;
        price.parse::<f64>().with_context(|| price.to_owned())
    };
    Ok(Rates { prompt: rate("request_token")?, completion: rate("response_token")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_billed_at_the_rates_of_its_model_and_mode() {
        let tariff = Tariff::read().unwrap();
        let billed = Billed { calls: 2, prompt: 1_000_000, completion: 1_000_000 };
        for (kind, role, cents) in [
            ("plain", "", 75.0),
            ("judged", "guardrail", 75.0),
            (DAY, "", 37.5),
            ("immediate", "", 75.0),
            ("embedding", "", 2.0),
            ("searched", "semantic_cache", 2.0),
            ("realtime", "", 2500.0),
            ("tool", "", 5.0),
        ] {
            assert!((tariff.cents(kind, role, &billed) - cents).abs() < 1e-6, "{kind} {role}");
        }
    }
}
