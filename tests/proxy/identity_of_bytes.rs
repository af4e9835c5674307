//! Two thousand exchanges of seeded shapes in one dialect: unknown fields, any order of keys, odd spaces, escapes,
//! numbers that a float would spoil, plain answers and streams in pieces. What the gateway was not asked to change
//! arrives as it was written, in both directions.

use crate::families::{application, integrate};
use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use serde_json::json;

const EXCHANGES: u64 = 2000;
const PATHS: &[&str] = &["/chat/completions", "/completions", "/embeddings", "/responses", "/moderations"];

/// SplitMix64: the same shapes on every run, each told by its number.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % sides as u64) as usize
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.roll(of.len())]
    }

    fn space(&mut self) -> &'static str {
        self.one(&["", "", "", " ", "\n", "\t", "\r\n  ", "  "])
    }

    fn number(&mut self) -> String {
        const ODD: &[&str] = &[
            "0",
            "-0",
            "1.0",
            "1e5",
            "1E+2",
            "0.1000000000000000055511151231257827",
            "123456789012345678901234567890",
            "-1.50",
            "9007199254740993",
            "1e-7",
            "3.14159265358979323846",
        ];
        match self.roll(3) {
            0 => self.roll(1_000_000).to_string(),
            _ => self.one(ODD).to_owned(),
        }
    }

    /// With its quotes, escaped in more than one way.
    fn string(&mut self) -> String {
        const PIECES: &[&str] = &[
            "a",
            "word ",
            "é",
            "\\u00e9",
            "東京",
            "🌍",
            "\\ud83c\\udf0d",
            "\\n",
            "\\/",
            "/",
            "\\\"",
            "\\\\",
            "\\u0000",
            "}",
            "]",
            ":",
            ",",
            "data: ",
            "[DONE]",
            "\\u2028",
            "\u{2028}",
            "<",
            "'",
        ];
        let pieces: String = (0..self.roll(6)).map(|_| self.one(PIECES)).collect();
        format!("\"{pieces}\"")
    }

    fn value(&mut self, depth: usize) -> String {
        match self.roll(if depth == 0 { 5 } else { 7 }) {
            0 | 1 => self.string(),
            2 => self.number(),
            3 => self.one(&["true", "false"]).to_owned(),
            4 => "null".to_owned(),
            5 => self.array(depth - 1),
            _ => {
                let members = (0..self.roll(4)).map(|_| (self.string(), self.value(depth - 1))).collect();
                self.object(members)
            }
        }
    }

    fn array(&mut self, depth: usize) -> String {
        let items: Vec<String> =
            (0..self.roll(4)).map(|_| format!("{}{}{}", self.space(), self.value(depth), self.space())).collect();
        format!("[{}]", items.join(","))
    }

    fn object(&mut self, members: Vec<(String, String)>) -> String {
        let written: Vec<String> = members
            .into_iter()
            .map(|(key, value)| {
                format!("{}{key}{}:{}{value}{}", self.space(), self.space(), self.space(), self.space())
            })
            .collect();
        format!("{{{}}}", written.join(","))
    }

    /// Members that nobody knows, some of them twice.
    fn unknown(&mut self) -> Vec<(String, String)> {
        (0..self.roll(6))
            .map(|_| {
                (format!("\"{}{}\"", self.one(&["new_", "x-", "Größe ", "\\u0061_"]), self.roll(4)), self.value(3))
            })
            .collect()
    }

    fn shuffled(&mut self, mut members: Vec<(String, String)>) -> Vec<(String, String)> {
        for last in (1..members.len()).rev() {
            let other = self.roll(last + 1);
            members.swap(last, other);
        }
        members
    }

    /// A request with places for the model and the seed.
    fn request(&mut self, is_stream: bool) -> String {
        let mut members = self.unknown();
        let message = (0..1 + self.roll(3)).map(|_| {
            let mut message =
                vec![("\"role\"".to_owned(), "\"user\"".to_owned()), ("\"content\"".to_owned(), self.string())];
            message.extend(self.unknown());
            let message = self.shuffled(message);
            self.object(message)
        });
        let messages = message.collect::<Vec<_>>().join(",");
        members.extend([
            ("\"model\"".to_owned(), "\"MODEL\"".to_owned()),
            ("\"messages\"".to_owned(), format!("[{messages}]")),
            ("\"input\"".to_owned(), self.string()),
            ("\"seed\"".to_owned(), "SEED".to_owned()),
        ]);
        if is_stream {
            members.push(("\"stream\"".to_owned(), "true".to_owned()));
            members.push(("\"stream_options\"".to_owned(), "{\"include_usage\":true}".to_owned()));
        }
        let members = self.shuffled(members);
        format!("{}{}{}", self.space(), self.object(members), self.space())
    }

    fn answer(&mut self) -> String {
        let members = self.unknown();
        format!("{}{}{}", self.space(), self.object(members), self.space())
    }

    fn stream(&mut self) -> String {
        let mut out = String::new();
        for _ in 0..1 + self.roll(8) {
            let end = self.one(&["\n", "\r\n"]);
            if self.roll(4) == 0 {
                out += &format!(": {}{end}{end}", self.one(&["ping", "", "日本"]));
            }
            if self.roll(3) == 0 {
                out += &format!("event: kind{end}id: {}{end}", self.roll(100));
            }
            let members = self.unknown();
            // An event's data ends with its line.
            let data = self.object(members).replace(['\n', '\r'], " ");
            out += &format!("data:{}{data}{end}{end}", self.one(&[" ", "", "  "]));
        }
        out + self.one(&["data: [DONE]\n\n", "data: [DONE]\r\n\r\n", ""])
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_exchanges_pass_byte_for_byte_but_for_the_edits_asked_for() {
    let stack = Stack::start().await;
    integrate(&stack, "prod", "openai").await;
    let edits = json!({ "provider": "@prod", "override_params": { "seed": 7, "model": "model-b" } }).to_string();
    // How it is asked, the model and the seed as sent, the model and the seed as they must arrive.
    let ways: [(Client, &str, &str, &str, &str); 3] = [
        (stack.client(), "m\\u002d1", "1.50", "m\\u002d1", "1.50"),
        (application(&stack), "@prod/m-1", "1e2", "m-1", "1e2"),
        (application(&stack).with("x-gateway-config", edits), "m-1", "123", "model-b", "7"),
    ];
    for number in 0..EXCHANGES {
        let mut dice = Dice(number);
        let is_stream = dice.roll(3) == 0;
        let path = dice.one(PATHS);
        let (client, model, seed, model_there, seed_there) = &ways[dice.roll(ways.len())];
        let request = dice.request(is_stream);
        let written = |model: &str, seed: &str| request.replacen("MODEL", model, 1).replacen("SEED", seed, 1);
        let (kind, said) = match is_stream {
            true => ("text/event-stream", dice.stream()),
            false => ("application/json", dice.answer()),
        };
        let mut fault = json!({ "body": said, "content_type": kind });
        match dice.roll(4) {
            0 => fault["chunk_bytes"] = json!(1 + dice.roll(40)),
            1 => fault["no_content_length"] = json!(true),
            _ => {}
        }
        stack.mock.reset();
        stack.mock.script(json!([fault])).unwrap();
        let sent = client.request(Method::POST, path).header("content-type", "application/json");
        let answer = whole(sent.body(written(model, seed))).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, said), "exchange {number}: {path}");
        let arrived = stack.mock.requests().pop().expect("it was asked");
        let arrived = String::from_utf8(arrived.body.to_vec()).unwrap();
        assert_eq!(arrived, written(model_there, seed_there), "exchange {number}: {path}");
    }
}
