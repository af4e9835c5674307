//! Words that must be the same on both sides keep questions apart.

use super::*;

fn conflict(one: &str, another: &str, guard: Guard) -> Option<Conflict> {
    let (one, another) = (LexicalMarks::read(one), LexicalMarks::read(another));
    let found = one.conflict(&another, guard);
    assert_eq!(found, another.conflict(&one, guard), "the order does not matter");
    found
}

#[test]
fn what_must_be_the_same_keeps_questions_apart() {
    for (one, another, kind) in [
        ("Who won in 2014?", "Who won in 2018?", Conflict::Numbers),
        ("Name three fruits", "Name five fruits", Conflict::Numbers),
        ("Name three fruits", "Name fruits", Conflict::Numbers),
        ("the first season", "the second season", Conflict::Numbers),
        ("5 kg of rice", "5 lb of rice", Conflict::Numbers),
        ("How many miles is it?", "How many kilometres is it?", Conflict::Numbers),
        ("convert miles to km", "convert km to miles", Conflict::Numbers),
        ("How much is €20?", "How much is £20?", Conflict::Numbers),
        ("What is new in Python 3.11?", "What is new in Python 3.12?", Conflict::Numbers),
        ("Does it contain gluten?", "Doesn't it contain gluten?", Conflict::Negations),
        ("Can I go with a passport?", "Can I go without a passport?", Conflict::Negations),
        ("Is it refundable?", "Is it non-refundable?", Conflict::Negations),
        ("what does \"a b\" mean", "what does \"a c\" mean", Conflict::Quotes),
        ("what does `x += 1` do", "what does `x -= 1` do", Conflict::Quotes),
        ("what is user.name", "what is user.email", Conflict::Quotes),
        ("the capital of France", "the capital of Spain", Conflict::Names),
        ("the capital of france", "the capital of Spain", Conflict::Names),
        ("from Paris to Lyon", "from Lyon to Paris", Conflict::Names),
        ("open on monday", "open on sunday", Conflict::Names),
        ("Is it legal?", "Is it illegal?", Conflict::Opposites),
        ("How to install it?", "How to uninstall it?", Conflict::Opposites),
        ("run before lunch", "run after lunch", Conflict::Opposites),
        ("raise the temperature", "lower the temperature", Conflict::Opposites),
        ("When was it built?", "Where was it built?", Conflict::Opposites),
    ] {
        assert_eq!(conflict(one, another, Guard::Marks), Some(kind), "{one} | {another}");
    }
}

#[test]
fn how_a_question_is_put_does_not() {
    for (one, another) in [
        ("How do I reset my password?", "How can I reset my password?"),
        ("What is the capital of France?", "whats the capital of france"),
        ("In Git, how do I undo a commit?", "How do I undo a commit in Git?"),
        ("Name five fruits", "What are 5 fruits?"),
        ("15 % of 200", "15 percent of 200"),
        ("Why should I not use it?", "Why shouldn't I use it?"),
        ("What happened in Berlin in 1989?", "What happened in 1989 in Berlin?"),
        ("How do I convert 10 miles to kilometres?", "How many km are 10 miles?"),
        ("Hi! Please write a poem about the sea.", "Write a poem about the sea"),
        ("How do I buy a card?", "How can I purchase a card?"),
    ] {
        assert_eq!(conflict(one, another, Guard::Marks), None, "{one} | {another}");
        let words = conflict(one, another, Guard::Words);
        assert!(words.is_none() || one.contains("miles"), "{one} | {another}: {words:?}");
    }
}

#[test]
fn the_stricter_guard_compares_the_words_and_their_order() {
    for (one, another, kind) in [
        ("How do I cook rice?", "How do I cook pasta?", Some(Conflict::Words)),
        ("Did the dog bite the cat?", "Did the cat bite the dog?", Some(Conflict::Order)),
        ("What is the status of my order?", "Where do I see the status of my order?", None),
        ("a banana bread recipe", "a recipe for banana bread", None),
    ] {
        assert_eq!(conflict(one, another, Guard::Marks), None, "{one} | {another}");
        assert_eq!(conflict(one, another, Guard::Words), kind, "{one} | {another}");
    }
}

#[test]
fn any_text_has_marks_of_a_bounded_size_and_agrees_with_itself() {
    let long = "Word ".repeat(20_000);
    let numbers = "7 ".repeat(20_000);
    let quotes = "\"".repeat(20_001);
    let apostrophes = " '".repeat(10_000);
    for text in [
        "",
        "?",
        "日本語のテキスト",
        "🙂 🙂",
        "'",
        "n't",
        "-",
        "$",
        "%",
        "1,",
        ",1",
        &long,
        &numbers,
        &quotes,
        &apostrophes,
    ] {
        let marks = LexicalMarks::read(text);
        assert_eq!(marks.conflict(&marks.clone(), Guard::Words), None);
        assert!(marks.weight() < 16 << 10);
        assert_eq!(LexicalMarks::decode(&marks.encode()), Some(marks));
    }
    let other = format!("{long} end");
    assert_eq!(conflict(&long, &other, Guard::Marks), Some(Conflict::Quotes), "beyond the bound all must be the same");
}

#[test]
fn many_words_are_compared_as_few_are() {
    let list: String = (0..60_u8)
        .map(|at| format!("{}{} ", char::from(b'b' + at / 10), "o".repeat(usize::from(at % 10) + 3)))
        .collect();
    let (one, more) = (LexicalMarks::read(&list), LexicalMarks::read(&format!("{list} kettle")));
    let another = LexicalMarks::read(&format!("{list} teapot"));
    assert_eq!(one.conflict(&one, Guard::Words), None);
    assert_eq!(one.conflict(&more, Guard::Words), None, "one side has all words of the other");
    assert_eq!(more.conflict(&another, Guard::Words), Some(Conflict::Words));
}
