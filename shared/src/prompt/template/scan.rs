//! From text to tags: a flat list, in which lines that hold nothing but tags have lost their white space.

use super::TemplateError;

/// Bytes of a name. Looking one up takes time by its length, and counts as one step.
const MAX_NAME: usize = 255;

#[derive(Debug, PartialEq)]
pub enum Token<'t> {
    Text(&'t str),
    Variable(&'t str),
    Open { name: &'t str, is_inverted: bool },
    Close(&'t str),
    Partial { name: &'t str, indentation: &'t str },
}

/// A line as far as it was read.
struct Line {
    /// The first token that begins in it.
    first_token: usize,
    /// Where it begins in the text.
    begin: usize,
    has_tag: bool,
    /// Text that is not white space, or a variable: the line stays.
    has_content: bool,
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    delimiters: (&'t str, &'t str),
    tokens: Vec<Token<'t>>,
    line: Line,
}

pub fn scan(text: &str) -> Result<Vec<Token<'_>>, TemplateError> {
    let line = Line { first_token: 0, begin: 0, has_tag: false, has_content: false };
    let mut scan = Scan { text, at: 0, delimiters: ("{{", "}}"), tokens: Vec::new(), line };
    loop {
        let rest = &text[scan.at..];
        let tag = rest.find(scan.delimiters.0);
        scan.texts(tag.map_or(text.len(), |tag| scan.at + tag));
        if tag.is_none() {
            scan.end_line();
            return Ok(scan.tokens);
        }
        scan.tag()?;
    }
}

impl<'t> Scan<'t> {
    /// Text up to the next tag, a token for each line, with the white space before its first tag apart.
    fn texts(&mut self, end: usize) {
        while self.at < end {
            let rest = &self.text[self.at..end];
            let length = rest.find('\n').map_or(rest.len(), |newline| newline + 1);
            let piece = &rest[..length];
            self.line.has_content |= piece.contains(|char: char| !char.is_whitespace());
            self.tokens.push(Token::Text(piece));
            self.at += length;
            if piece.ends_with('\n') {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let is_only_tags = self.line.has_tag && !self.line.has_content;
        for token in &mut self.tokens[self.line.first_token..] {
            match token {
                Token::Text(text) if is_only_tags => *text = "",
                Token::Partial { indentation, .. } if !is_only_tags => *indentation = "",
                _ => {}
            }
        }
        self.line = Line { first_token: self.tokens.len(), begin: self.at, has_tag: false, has_content: false };
    }

    fn tag(&mut self) -> Result<(), TemplateError> {
        let begin = self.at;
        let is_first_of_line = !self.line.has_tag;
        self.line.has_tag = true;
        let (open, close) = self.delimiters;
        let inside = &self.text[begin + open.len()..];
        let kind = inside.chars().next().filter(|kind| "#^/>&{=!".contains(*kind));
        let skipped = usize::from(kind.is_some());
        let ending = match kind {
            Some('{') => format!("}}{close}"),
            Some('=') => format!("={close}"),
            _ => close.to_owned(),
        };
        let length = inside[skipped..].find(&ending).ok_or(TemplateError::OpenTag(begin))?;
        let written = inside[skipped..skipped + length].trim();
        self.at = begin + open.len() + skipped + length + ending.len();
        if written.is_empty() && kind != Some('!') {
            return Err(TemplateError::NoName(begin));
        }
        if written.len() > MAX_NAME && !matches!(kind, Some('!' | '=')) {
            return Err(TemplateError::LongName(begin));
        }
        let token = match kind {
            Some('!') => return Ok(()),
            Some('=') => {
                self.delimiters = delimiters(written).ok_or(TemplateError::Delimiters(begin))?;
                return Ok(());
            }
            Some('#') => Token::Open { name: written, is_inverted: false },
            Some('^') => Token::Open { name: written, is_inverted: true },
            Some('/') => Token::Close(written),
            Some('>') => {
                let before = if is_first_of_line { &self.text[self.line.begin..begin] } else { "" };
                Token::Partial { name: written, indentation: before }
            }
            _ => {
                self.line.has_content = true;
                Token::Variable(written)
            }
        };
        self.tokens.push(token);
        Ok(())
    }
}

fn delimiters(written: &str) -> Option<(&str, &str)> {
    let mut both = written.split_whitespace();
    let pair = (both.next()?, both.next()?);
    let is_usable = both.next().is_none() && !written.contains('=');
    is_usable.then_some(pair)
}
