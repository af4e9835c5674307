//! How well the local embedder and the lexical guard tell questions that may share an answer from those that must not, on
//! labelled pairs (`semantic/pairs.tsv`). The pairs were written before any score was looked at; the threshold was chosen by
//! every second of them and holds for all.

use harness::embedder_folder;
use proxy::cache::semantic::embedder::local::{LocalEmbedder, THRESHOLD};
use proxy::cache::semantic::lexical::{Guard, LexicalMarks};

struct Pair {
    is_same: bool,
    texts: [&'static str; 2],
}

struct Scored {
    is_same: bool,
    cosine: f32,
    passes: bool,
    texts: [&'static str; 2],
}

fn pairs() -> Vec<Pair> {
    let lines = include_str!("semantic/pairs.tsv").lines().filter(|line| !line.starts_with('#'));
    let read = |line: &'static str| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [label, _, one, another] = fields[..] else { panic!("four fields: {line}") };
        assert!(matches!(label, "same" | "other"), "{line}");
        Pair { is_same: label == "same", texts: [one, another] }
    };
    lines.map(read).collect()
}

fn scored(guard: Option<Guard>) -> Vec<Scored> {
    let embedder = LocalEmbedder::open(&embedder_folder()).unwrap();
    let score = |pair: Pair| {
        let [one, another] = pair.texts.map(|text| embedder.vector(text).unwrap());
        let [left, right] = pair.texts.map(LexicalMarks::read);
        Scored {
            is_same: pair.is_same,
            cosine: one.iter().zip(&another).map(|(one, another)| one * another).sum(),
            passes: guard.is_none_or(|guard| left.conflict(&right, guard).is_none()),
            texts: pair.texts,
        }
    };
    pairs().into_iter().map(score).collect()
}

/// Precision and recall at a threshold, and the pairs that were wrongly taken for one.
fn quality(scored: &[Scored], threshold: f32) -> (f64, f64, Vec<[&'static str; 2]>) {
    let matched: Vec<&Scored> = scored.iter().filter(|pair| pair.passes && pair.cosine >= threshold).collect();
    let right = matched.iter().filter(|pair| pair.is_same).count() as f64;
    let all = scored.iter().filter(|pair| pair.is_same).count() as f64;
    let wrong = matched.iter().filter(|pair| !pair.is_same).map(|pair| pair.texts).collect();
    (right / (matched.len().max(1) as f64), right / all, wrong)
}

#[test]
fn the_local_embedder_is_precise_with_the_guard_at_its_threshold() {
    let counts = pairs().iter().fold([0, 0], |[same, other], pair| match pair.is_same {
        true => [same + 1, other],
        false => [same, other + 1],
    });
    assert!(counts[0] >= 100 && counts[1] >= 100, "{counts:?}");
    for (name, guard) in [("no guard", None), ("marks", Some(Guard::Marks)), ("words", Some(Guard::Words))] {
        let scored = scored(guard);
        for threshold in [0.7, 0.75, THRESHOLD, 0.85, 0.9, 0.95] {
            let (precision, recall, wrong) = quality(&scored, threshold);
            println!(
                "{name:>8} at {threshold:.2}: precision {precision:.3}, recall {recall:.3}, wrong {}",
                wrong.len()
            );
        }
    }
    let (precision, recall, wrong) = quality(&scored(Some(Guard::Words)), THRESHOLD);
    assert!(precision >= 0.98, "precision {precision:.3}: {wrong:?}");
    assert!(recall >= 0.6, "a guard that lets nothing pass is precise too: recall {recall:.3}");
    let (unguarded, _, _) = quality(&scored(None), THRESHOLD);
    assert!(unguarded < 0.8, "the near misses are near: {unguarded:.3}");
}
