//! What issuers said about tokens, given again for as long as a check allows. A token is kept as its digest alone, under its
//! organisation: what one was told another does not see. Bounded, so that a flood of tokens costs its own organisation calls.

use parking_lot::Mutex;
use sha2::{Digest as _, Sha256};
use shared::guardrails::remote::{RemoteAnswer, RemoteCall};
use shared::model::id::OrganisationId;
use std::collections::HashMap;
use std::time::Instant;

/// Of one organisation, and of all.
const MAX_PER_ORGANISATION: usize = 2048;
const MAX_ANSWERS: usize = 8192;
/// Longer answers are not kept.
const MAX_ANSWER_BYTES: usize = 4 << 10;

#[derive(Default)]
pub struct IntrospectionCache {
    answers: Mutex<HashMap<OrganisationId, HashMap<AnswerKey, CachedAnswer>>>,
}

type AnswerKey = [u8; 32];

struct CachedAnswer {
    answer: RemoteAnswer,
    until: Instant,
}

impl IntrospectionCache {
    /// What tells this call from every other.
    pub fn key(call: &RemoteCall) -> AnswerKey {
        let mut hash = Sha256::new();
        hash.update((call.url.len() as u64).to_be_bytes());
        hash.update(&call.url);
        hash.update(&call.body);
        hash.finalize().into()
    }

    pub fn find(&self, organisation: OrganisationId, key: &AnswerKey, now: Instant) -> Option<RemoteAnswer> {
        let all = self.answers.lock();
        let found = all.get(&organisation)?.get(key)?;
        (now < found.until).then(|| found.answer.clone())
    }

    /// Keeps an answer until then. One that is no success says nothing of the token.
    pub fn keep(
        &self,
        organisation: OrganisationId,
        key: AnswerKey,
        answer: &RemoteAnswer,
        until: Instant,
        now: Instant,
    ) {
        if !answer.is_success() || answer.body.len() > MAX_ANSWER_BYTES {
            return;
        }
        let mut all = self.answers.lock();
        if all.values().map(HashMap::len).sum::<usize>() >= MAX_ANSWERS {
            all.values_mut().for_each(|own| own.retain(|_, one| now < one.until));
            all.retain(|_, own| !own.is_empty());
            // Whoever has most makes room.
            if all.values().map(HashMap::len).sum::<usize>() >= MAX_ANSWERS {
                let largest = all.iter().max_by_key(|(_, own)| own.len()).map(|(organisation, _)| *organisation);
                largest.and_then(|largest| all.remove(&largest));
            }
        }
        let own = all.entry(organisation).or_default();
        if own.len() >= MAX_PER_ORGANISATION {
            own.retain(|_, one| now < one.until);
        }
        if own.len() >= MAX_PER_ORGANISATION {
            own.clear();
        }
        own.insert(key, CachedAnswer { answer: answer.clone(), until });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::time::Duration;
    use uuid::Uuid;

    fn call(token: &str) -> RemoteCall {
        RemoteCall::post("https://issuer.test/introspect".into(), &json!({ "token": token }))
    }

    #[test]
    fn an_answer_is_given_again_to_its_own_organisation_until_its_time_is_over() {
        let (all, now) = (IntrospectionCache::default(), Instant::now());
        let (one, other) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let key = IntrospectionCache::key(&call("a"));
        all.keep(one, key, &RemoteAnswer::new(200, "{}"), now + Duration::from_secs(60), now);
        for (organisation, token, after, is_found) in [
            (one, "a", 0, true),
            (one, "a", 59, true),
            (one, "a", 60, false),
            (one, "b", 0, false),
            (other, "a", 0, false),
        ] {
            let found =
                all.find(organisation, &IntrospectionCache::key(&call(token)), now + Duration::from_secs(after));
            assert_eq!(found.is_some(), is_found, "{organisation:?} {token} {after}");
        }
        for (token, answer) in
            [("b", RemoteAnswer::new(500, "{}")), ("c", RemoteAnswer::new(200, vec![b' '; MAX_ANSWER_BYTES + 1]))]
        {
            let key = IntrospectionCache::key(&call(token));
            all.keep(one, key, &answer, now + Duration::from_secs(60), now);
            assert!(all.find(one, &key, now).is_none(), "{token}");
        }
    }

    #[test]
    fn no_more_is_kept_than_there_is_room_for_and_one_that_floods_loses_its_own() {
        let (all, now) = (IntrospectionCache::default(), Instant::now());
        let (flood, quiet) = (Uuid::from_u128(1).into(), Uuid::from_u128(2).into());
        let (answer, until) = (RemoteAnswer::new(200, "{}"), now + Duration::from_secs(60));
        let key = |n: usize| IntrospectionCache::key(&call(&n.to_string()));
        all.keep(quiet, key(0), &answer, until, now);
        for n in 0..3 * MAX_PER_ORGANISATION {
            all.keep(flood, key(n), &answer, until, now);
        }
        let held = all.answers.lock()[&flood].len();
        assert!(
            held <= MAX_PER_ORGANISATION && all.find(flood, &key(3 * MAX_PER_ORGANISATION - 1), now).is_some(),
            "{held}"
        );
        assert!(all.find(quiet, &key(0), now).is_some());
        for organisation in 10..18_u128 {
            for n in 0..MAX_PER_ORGANISATION {
                all.keep(Uuid::from_u128(organisation).into(), key(n), &answer, until, now);
            }
        }
        assert!(all.answers.lock().values().map(HashMap::len).sum::<usize>() <= MAX_ANSWERS);
        assert!(all.find(quiet, &key(0), now).is_some());
    }
}
