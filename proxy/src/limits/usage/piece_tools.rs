//! Calls of a provider's own tools in a plain answer that comes in pieces: the items of a response are counted as they pass, and
//! the lists that ground an answer of Google's are held until they are whole. What an answer is shows at its beginning; of any
//! other nothing is looked at.

use super::hosted_tools::{CHUNKS, ITEMS, QUERIES, ToolCounts, grounding, is_value};
use memchr::memmem;

/// By so many bytes a response or an answer of Google's is known.
const BEGINNING: usize = 256;
/// Longer than any name with the space before it: of the end of a piece so much is held for the next one.
const SEAM: usize = 64;
/// Of a list. What is longer is not counted.
const MAX_LIST: usize = 64 << 10;
/// Lists that are open at once.
const MAX_LISTS: usize = 4;

#[derive(Debug, Default)]
pub struct PieceTools {
    beginning: Vec<u8>,
    tail: Vec<u8>,
    items: ToolCounts,
    lists: Vec<OpenList>,
    queries: u64,
    has_maps: bool,
}

impl PieceTools {
    /// The next piece.
    pub fn push(&mut self, piece: &[u8]) {
        let room = BEGINNING - self.beginning.len();
        self.beginning.extend_from_slice(&piece[..piece.len().min(room)]);
        let is_known = self.beginning.len() == BEGINNING;
        let (is_response, is_googles) = (self.is_response(), self.begins_with(b"\"candidates\""));
        if is_known && !is_response && !is_googles {
            return;
        }
        for list in &mut self.lists {
            list.extend(piece);
        }
        let ahead = piece.len().min(SEAM);
        let mut seam = std::mem::take(&mut self.tail);
        let before = seam.len();
        seam.extend_from_slice(&piece[..ahead]);
        // Each name is counted where it ends.
        if is_response || !is_known {
            self.count_items(&seam, before);
            self.count_items(piece, ahead);
        }
        if is_googles || !is_known {
            self.begin_lists(&seam, before, &piece[ahead..]);
            self.begin_lists(piece, ahead, &[]);
        }
        self.end_lists();
        let end = if piece.len() > SEAM { piece } else { &seam[..] };
        self.tail = end[end.len().saturating_sub(SEAM)..].to_vec();
    }

    pub fn counts(&self) -> ToolCounts {
        if self.is_response() {
            return self.items;
        }
        let mut counts = ToolCounts::default();
        if !self.begins_with(b"\"candidates\"") {
            return counts;
        }
        if self.queries > 0 {
            (counts[0], counts[6]) = (self.queries, 1);
        }
        counts[5] = self.has_maps.into();
        counts
    }

    fn is_response(&self) -> bool {
        self.begins_with(b"\"response\"")
    }

    fn begins_with(&self, name: &[u8]) -> bool {
        memmem::find(&self.beginning, name).is_some()
    }

    /// Those that end after `from`.
    fn count_items(&mut self, bytes: &[u8], from: usize) {
        for (name, unit) in ITEMS {
            let quoted = format!("\"{name}\"");
            let ends_here = |at: &usize| at + quoted.len() > from && is_value(bytes, *at);
            self.items[unit] += memmem::find_iter(bytes, quoted.as_bytes()).filter(ends_here).count() as u64;
        }
    }

    fn begin_lists(&mut self, bytes: &[u8], from: usize, rest: &[u8]) {
        for name in [QUERIES, CHUNKS] {
            let quoted = [b"\"", name, b"\""].concat();
            for at in memmem::find_iter(bytes, &quoted).filter(|at| at + quoted.len() > from) {
                if self.lists.len() == MAX_LISTS {
                    return;
                }
                let list = bytes[at..].iter().chain(rest).take(MAX_LIST).copied();
                self.lists.push(OpenList { bytes: list.collect(), ..OpenList::default() });
            }
        }
    }

    fn end_lists(&mut self) {
        for mut list in std::mem::take(&mut self.lists) {
            match list.end() {
                Some(end) => {
                    let counts = grounding(&list.bytes[..end]);
                    self.queries = self.queries.saturating_add(counts[0]);
                    self.has_maps |= counts[5] > 0;
                }
                None if list.bytes.len() < MAX_LIST => self.lists.push(list),
                None => {}
            }
        }
    }
}

/// A list with its name before it, and how far it was read: each byte is read once, however small the pieces are.
#[derive(Debug, Default)]
struct OpenList {
    bytes: Vec<u8>,
    read: usize,
    depth: usize,
    is_text: bool,
    is_escaped: bool,
}

impl OpenList {
    fn extend(&mut self, piece: &[u8]) {
        let room = MAX_LIST.saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
    }

    /// Where it ends; of what is no list, where that shows.
    fn end(&mut self) -> Option<usize> {
        while let Some(byte) = self.bytes.get(self.read) {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_text => self.is_escaped = true,
                b'"' => self.is_text = !self.is_text,
                _ if self.is_text => {}
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' if self.depth <= 1 => return Some(self.read + 1),
                b']' | b'}' => self.depth -= 1,
                b',' if self.depth == 0 => return Some(self.read),
                _ => {}
            }
            self.read += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::usage::hosted_tools::in_response;

    fn counted(body: &[u8], length: usize) -> ToolCounts {
        let mut tools = PieceTools::default();
        body.chunks(length).for_each(|piece| tools.push(piece));
        tools.counts()
    }

    #[test]
    fn whatever_the_pieces_the_same_calls_are_counted() {
        let padding = "x".repeat(300);
        let response = format!(
            r#"{{"id":"r","object":"response","p":"{padding}","output":[{{"type": "web_search_call"}},{{"type":"web_search_call"}},
            {{"type":"message","content":[{{"text":"a \"web_search_call\" is \"type\":\"file_search_call\""}}]}},
            {{"type" :  "file_search_call"}},{{"type":"image_generation_call"}}],"x":{{"code_interpreter_call":1}}}}"#
        );
        let response = response.as_bytes();
        let grounded = format!(
            r#"{{"candidates":[{{"text":"{padding}","groundingMetadata":{{"webSearchQueries" : ["a","b]\"["],
            "groundingChunks":[{{"web":{{}}}},{{"maps":{{"t":[1]}}}}]}}}},{{"groundingMetadata":{{"webSearchQueries":["c"],
            "groundingChunks":null}}}}],"usageMetadata":{{"promptTokenCount":1}}}}"#
        );
        let grounded = grounded.as_bytes();
        assert_eq!((in_response(response)[0], grounding(grounded)[0]), (2, 3));
        for length in 1..response.len() {
            assert_eq!(counted(response, length), in_response(response), "in pieces of {length}");
        }
        for length in 1..grounded.len() {
            assert_eq!(counted(grounded, length), grounding(grounded), "in pieces of {length}");
        }
        let chat = format!(
            r#"{{"object":"chat.completion","p":"{padding}","type":"web_search_call","webSearchQueries":["a"]}}"#
        );
        assert_eq!(counted(chat.as_bytes(), 7), ToolCounts::default());
    }

    #[test]
    fn a_list_without_an_end_is_not_held_for_ever() {
        let mut tools = PieceTools::default();
        tools.push(br#"{"candidates":[{"webSearchQueries":["#);
        for _ in 0..100 {
            tools.push(&[b'1'; 4096]);
            assert!(tools.lists.iter().all(|list| list.bytes.len() <= MAX_LIST && list.read == list.bytes.len()));
        }
        assert!(tools.lists.is_empty() && tools.counts() == ToolCounts::default());
    }
}
