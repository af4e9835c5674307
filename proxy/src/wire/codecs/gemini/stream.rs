//! Streams: every event is a whole answer with the next parts. Both directions are short, so they stand together.

use super::answer_reader::{blocked, read_citations, read_logprobs};
use super::answer_writer::{write_candidate, write_tail};
use super::{from_error_object, parts, usage, write_error};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_CHOICES, MAX_PARTS};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::open_parts::{OpenParts, Run};
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::sink::{EventSink, WireEvent};
use crate::wire::codecs::{StreamReader, StreamWriter, finish_reasons};
use crate::wire::conversation::{
    Choice, Delta, Extra, Finish, FinishReason, Media, MediaSource, NativeValue, Part, PartStart, TextPart, Thinking,
    ToolUse, Usage, WireFormat,
};

const FORMAT: WireFormat = WireFormat::Gemini;

#[derive(Debug, Default)]
pub(super) struct GeminiStreamReader {
    parts: OpenParts,
    has_started: bool,
    has_finished: bool,
    /// With or after the finish reason.
    has_counted: bool,
    has_several: bool,
    has_failed: bool,
}

impl StreamReader for GeminiStreamReader {
    fn push(&mut self, event: &WireEvent<'_>, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        if self.has_failed || event.data.trim_ascii().is_empty() || event.data == b"[DONE]" {
            return Ok(());
        }
        let mut chunk = Fields::parse(event.data)?;
        if let Some(error) = chunk.object("error")? {
            self.has_failed = true;
            deltas.push(Delta::Error(from_error_object(200, error, event.data)));
            return Ok(());
        }
        let (id, model) = (chunk.string("responseId")?, chunk.string("modelVersion")?);
        if !std::mem::replace(&mut self.has_started, true) {
            deltas.push(Delta::Start { id, model, created: None, extra: Extra::default() });
        }
        let candidates = chunk.bounded_list("candidates", MAX_CHOICES)?;
        if let Some(feedback) = chunk.take("promptFeedback") {
            if let (true, Some(finish)) = (candidates.is_empty(), blocked(&feedback).finish) {
                self.has_finished = true;
                deltas.push(Delta::Finish { choice: 0, finish, extra: Extra::default() });
            }
            deltas.push(Delta::Safety { choice: None, ratings: NativeValue::new(FORMAT, feedback) });
        }
        for (place, value) in candidates.into_iter().enumerate() {
            self.candidate(Fields::new(value, FieldPath::Root)?, place, deltas)?;
        }
        let counts = chunk.object("usageMetadata")?;
        self.has_counted |= self.has_finished && counts.is_some();
        deltas.extend(counts.map(|map| Delta::Usage(usage::read(map))));
        Ok(())
    }

    /// Usage comes with the finish reason of the last candidate; of several only the end of the connection tells.
    fn has_ended(&self) -> bool {
        self.has_failed || (self.has_finished && self.has_counted && !self.has_several)
    }

    /// There is no end marker; the finish reason is the end.
    fn finish(&mut self, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        self.parts.end_all(deltas);
        if self.has_finished || self.has_failed { Ok(()) } else { Err(CodecError::CutStream) }
    }
}

impl GeminiStreamReader {
    fn candidate(
        &mut self,
        mut candidate: Fields<'_>,
        place: usize,
        deltas: &mut Vec<Delta>,
    ) -> Result<(), CodecError> {
        let index = candidate.integer("index")?.and_then(|index| u32::try_from(index).ok());
        let choice = index.unwrap_or(place as u32);
        self.has_several |= choice > 0;
        for value in candidate.inner("content").bounded_list("parts", MAX_PARTS)? {
            self.part(choice, parts::read(value, FieldPath::Root)?, deltas)?;
        }
        for citation in read_citations(&mut candidate)? {
            let part = self.parts.run(choice, Run::Text, deltas)?;
            deltas.push(Delta::Citation { choice, part, citation: Box::new(citation) });
        }
        let tokens = read_logprobs(candidate.take("logprobsResult"));
        if !tokens.is_empty() {
            deltas.push(Delta::Logprobs { choice, tokens });
        }
        if let Some(ratings) = candidate.take("safetyRatings") {
            deltas.push(Delta::Safety { choice: Some(choice), ratings: NativeValue::new(FORMAT, ratings) });
        }
        if let Some(word) = candidate.string("finishReason")? {
            self.has_finished = true;
            let mut finish = finish_reasons::read(FORMAT, word);
            if finish.reason == FinishReason::Stop && self.parts.has_calls(choice) {
                finish = Finish::new(FinishReason::ToolUse);
            }
            deltas.push(Delta::Finish { choice, finish, extra: Extra::new(FORMAT, candidate.rest()) });
        }
        Ok(())
    }

    fn part(&mut self, choice: u32, part: Part, deltas: &mut Vec<Delta>) -> Result<(), CodecError> {
        let (run, text, signature) = match part {
            Part::Text(text) => (Run::Text, text.text, text.signature),
            Part::Thinking(thinking) => (Run::Thinking, thinking.text, thinking.signature),
            // Calls come whole.
            Part::ToolUse(call) => {
                let start = PartStart::ToolUse { id: call.id, name: call.name, signature: call.signature };
                let part = self.parts.begin(choice, start, deltas)?;
                if !call.arguments.is_empty() {
                    deltas.push(Delta::Arguments { choice, part, json: call.arguments });
                }
                deltas.push(Delta::PartEnds { choice, part });
                return Ok(());
            }
            whole => return self.parts.whole(choice, whole, deltas),
        };
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        let part = self.parts.run(choice, run, deltas)?;
        if !text.is_empty() {
            deltas.push(Delta::Text { choice, part, text });
        }
        deltas.extend(signature.map(|signature| Delta::Signature { choice, part, signature }));
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct GeminiStreamWriter<'a> {
    options: AnswerOptions<'a>,
    id: Option<String>,
    model: Option<String>,
    /// Open parts of choices: texts go on at once, calls wait until they are whole.
    open: Vec<(u32, u32, Part)>,
    finished: Vec<Choice>,
    usage: Option<Usage>,
    has_failed: bool,
    held: usize,
}

impl<'a> GeminiStreamWriter<'a> {
    pub fn new(options: AnswerOptions<'a>) -> Self {
        Self {
            options,
            id: None,
            model: None,
            open: Vec::new(),
            finished: Vec::new(),
            usage: None,
            has_failed: false,
            held: 0,
        }
    }

    fn chunk(&mut self, sink: &mut dyn EventSink, choices: &[Choice], counts: Option<&Usage>) {
        let mut writer = JsonWriter::new(sink.begin(None));
        let w = &mut writer;
        w.open_object();
        w.array_field("candidates");
        choices.iter().for_each(|choice| write_candidate(w, choice));
        w.close_array();
        if let Some(counts) = counts {
            usage::write(w, counts);
        }
        write_tail(w, self.id.as_deref(), self.model.as_deref(), &self.options);
        w.close_object();
        sink.end();
    }

    fn one(&mut self, sink: &mut dyn EventSink, choice: u32, part: Part) {
        self.chunk(sink, &[Choice { index: choice, parts: vec![part], ..Choice::default() }], None);
    }

    fn find(&mut self, choice: u32, part: u32) -> Option<&mut Part> {
        self.open.iter_mut().rev().find(|open| (open.0, open.1) == (choice, part)).map(|open| &mut open.2)
    }

    fn ending(&mut self, choice: u32) -> &mut Choice {
        let place = match self.finished.iter().position(|known| known.index == choice) {
            Some(place) => place,
            None => {
                self.finished.push(Choice { index: choice, ..Choice::default() });
                self.finished.len() - 1
            }
        };
        &mut self.finished[place]
    }
}

impl StreamWriter for GeminiStreamWriter<'_> {
    fn push(&mut self, delta: &Delta, sink: &mut dyn EventSink) {
        match delta {
            Delta::Start { id, model, .. } => {
                self.id.clone_from(id);
                self.model.clone_from(model);
            }
            Delta::PartBegins { choice, part, start } => {
                let empty = match start {
                    PartStart::Text | PartStart::Refusal => Part::Text(TextPart::default()),
                    PartStart::Thinking { .. } => Part::Thinking(Thinking::default()),
                    PartStart::ToolUse { id, name, signature } => Part::ToolUse(ToolUse {
                        id: id.clone(),
                        name: name.clone(),
                        signature: signature.clone(),
                        ..ToolUse::default()
                    }),
                    PartStart::Audio { .. } => {
                        Part::Audio(Media::new(MediaSource::Base64(String::new()), Some("audio/pcm".into())))
                    }
                    PartStart::Whole(whole) => return self.one(sink, *choice, (**whole).clone()),
                };
                self.open.push((*choice, *part, empty));
            }
            Delta::Text { choice, part, text } => match self.find(*choice, *part) {
                Some(Part::Text(_)) => self.one(sink, *choice, Part::text(text.as_str())),
                Some(Part::Thinking(_)) => {
                    let thought = Thinking { text: text.clone(), ..Thinking::default() };
                    self.one(sink, *choice, Part::Thinking(thought));
                }
                _ => {}
            },
            Delta::Arguments { choice, part, json } => {
                self.held += json.len();
                if let Some(Part::ToolUse(call)) = self.find(*choice, *part) {
                    call.arguments.push_str(json);
                }
            }
            Delta::Signature { choice, part, signature } => match self.find(*choice, *part) {
                Some(Part::Text(_)) => {
                    let signed = TextPart { signature: Some(signature.clone()), ..TextPart::default() };
                    self.one(sink, *choice, Part::Text(signed));
                }
                Some(Part::ToolUse(call)) => call.signature = Some(signature.clone()),
                _ => {}
            },
            Delta::Sound { choice, base64, .. } => {
                let media = Media::new(MediaSource::Base64(base64.clone()), Some("audio/pcm".into()));
                self.one(sink, *choice, Part::Audio(media));
            }
            Delta::PartEnds { choice, part } => {
                let place = self.open.iter().rposition(|open| (open.0, open.1) == (*choice, *part));
                let ended = place.map(|place| self.open.remove(place).2);
                if let Some(call @ Part::ToolUse(_)) = ended {
                    self.one(sink, *choice, call);
                }
            }
            Delta::Logprobs { choice, tokens } => {
                self.held += tokens.iter().map(|token| 64 * (1 + token.top.len())).sum::<usize>();
                self.ending(*choice).logprobs.extend(tokens.iter().cloned());
            }
            Delta::Safety { choice: Some(choice), ratings } => self.ending(*choice).safety = Some(ratings.clone()),
            Delta::Finish { choice, finish, extra } => {
                let ending = self.ending(*choice);
                ending.finish = Some(finish.clone());
                ending.extra = extra.clone();
            }
            Delta::Usage(counts) => self.usage = Some(counts.clone()),
            Delta::Error(error) => {
                self.has_failed = true;
                write_error(&mut JsonWriter::new(sink.begin(None)), error, &self.options);
                sink.end();
            }
            Delta::Citation { .. } | Delta::Safety { choice: None, .. } => {}
        }
    }

    /// Finish reasons and usage come in one last chunk.
    fn held(&self) -> usize {
        self.held
    }

    fn finish(&mut self, sink: &mut dyn EventSink) {
        if self.has_failed {
            return;
        }
        for (choice, _, part) in std::mem::take(&mut self.open) {
            if matches!(part, Part::ToolUse(_)) {
                self.one(sink, choice, part);
            }
        }
        let finished = std::mem::take(&mut self.finished);
        let counts = self.usage.take();
        self.chunk(sink, &finished, counts.as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_a_finish_reason_was_cut() {
        let mut reader = GeminiStreamReader::default();
        let mut deltas = Vec::new();
        let data = br#"{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#;
        reader.push(&WireEvent { name: None, data }, &mut deltas).unwrap();
        assert_eq!(reader.finish(&mut deltas), Err(CodecError::CutStream));
    }
}
