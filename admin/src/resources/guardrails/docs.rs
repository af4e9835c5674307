//! How the OpenAPI document shows guardrails.

use super::Guardrail;
use super::content::MAX_CHECKS;
use crate::crud::versions::Versioned as _;
use crate::openapi::Doc;
use crate::openapi::schema::{self, Schema};
use serde_json::{Value, json};

pub fn docs() -> Vec<Doc> {
    let item = item();
    let whole = whole(&item);
    let sent =
        schema::object("NewGuardrail").need("name", name()).need("checks", checks()).need("actions", actions()).may(
            "organisation_id",
            organisation().says("In place of workspace_id: a guardrail of the whole organisation."),
        );
    let change = schema::object("GuardrailChange")
        .may("name", name().or_null())
        .may("checks", checks().or_null().says("Replaces all checks."))
        .may("actions", actions().or_null().says("Replaces all actions."));
    vec![
        Doc::list::<Guardrail>(&item)
            .search()
            .filter("organisation_id", schema::uuid().or_empty().says("Alone: only guardrails of the whole organisation."))
            .filter("ids", schema::any_text().eg("pg-pii-3f9a01").says("Ids or slugs, comma separated.")),
        Doc::create::<Guardrail>(sent).details(WRITTEN).answer(written()).also(409),
        Doc::get("/guardrails/checks", "List the checks that guardrails may have").answer(catalog()),
        Doc::post("/guardrails/test", "Try checks on a text, a request or an answer")
            .details(TRIED)
            .body(trial())
            .answer(tried()),
        Doc::read::<Guardrail>(&whole).filter("version", version().or_empty().says("The id of an older version.")),
        Doc::update::<Guardrail>(change).details(CHANGED).answer(written()).also(409),
        Doc::delete::<Guardrail>().forcible().details(
            "Refused, whatever is forced, while the organisation or a workspace has it among its defaults. Configs that \
             name it go on without it.",
        ),
        Doc::get("/guardrails/{id}/versions", "List the versions of a guardrail")
            .pages(Guardrail::VERSION_PAGES)
            .answer(versions(&whole)),
        Doc::post("/guardrails/{id}/rollback", "Go back to an older version of a guardrail")
            .details("Makes a new version with the content of the old one.")
            .body(schema::object("GuardrailRollback").need("version_id", version()))
            .answer(written())
            .also(409)
            .tagged()
            .conditional(),
    ]
}

const WRITTEN: &str = "Of a workspace, or with `organisation_id` alone of the organisation. Checks that do not exist, \
                       parameters that they do not take and actions that cannot be read are refused, all at once.";
const CHANGED: &str = "Sets the fields that are sent and keeps the others. Other checks or actions make a new version, \
                       which runs at once.";
const TRIED: &str = "Says what each check finds, by the code that runs on live requests. Nothing is saved and no provider \
                     is asked. Webhooks and vendors are asked only with `run_remote`. Checks that this version does not run are \
                     refused, as they are in guardrails.";

fn name() -> Schema {
    schema::text(1..=255).eg("No secrets")
}

fn organisation() -> Schema {
    schema::uuid().or_null().eg(Value::Null)
}

fn version() -> Schema {
    schema::name_of("9b2f8a52-8a52-4c0e-8f0e-7a1f2f1f0a11")
}

fn checks() -> Schema {
    let check = schema::object("GuardrailCheck")
        .need("id", schema::text(1..=100).eg("default.contains").says("As GET /guardrails/checks lists it."))
        .may(
            "parameters",
            schema::any_object()
                .eg(json!({ "operator": "none", "words": ["password"] }))
                .or_null()
                .says("What the check is told. `failOnError: true` makes an error of the check count as a failure."),
        )
        .may("name", schema::text(1..=255).eg("No passwords").or_null().says("A name for people."))
        .may("is_enabled", schema::flag().eg(true).or_null().says("Whether it runs; true when absent."));
    schema::list(check).at_least(1).at_most(MAX_CHECKS).says("What is looked at.")
}

fn actions() -> Schema {
    let switch = |says: &str| schema::flag().or_null().says(says);
    schema::object("GuardrailActions")
        .may("deny", switch("Whether a failed check refuses the call (446) in place of marking it (246).").eg(true))
        .may("async", switch("Whether it runs beside the call and only its result is logged."))
        .may("sequential", switch("Whether its checks run one after the other."))
        .may("soft_deny_200", switch("Whether a refusal is a 200 whose message says so."))
        .may(
            "stream",
            schema::choice(&["report", "hold"]).or_null().says(
                "Whether streams are judged after their end, or before any of it is released; `hold` where it denies.",
            ),
        )
        .may(
            "scope",
            schema::choice(&["last", "all"])
                .or_null()
                .eg(Value::Null)
                .says("Whether checks judge the last message or every text, in place of what each of them would."),
        )
        .may("on_success", outcome(&["continue"], "What follows when all checks pass.", 5))
        .may("on_fail", outcome(&["deny", "continue"], "What follows when a check fails.", -5))
        .may(
            "onFail",
            schema::choice(&["block", "log", "warn"])
                .or_null()
                .eg(Value::Null)
                .says("As `deny`, in other words: `block` denies."),
        )
        .may("audit", switch("Whether what it denies is told in the audit trail."))
        .may("message", schema::text(0..=1000).or_null().eg("This was refused by policy.").says("What a denial says."))
        .says("What follows from the verdict.")
}

fn outcome(words: &[&str], says: &str, usual: i64) -> Schema {
    let feedback = schema::object("GuardrailFeedback")
        .may("value", schema::whole(-10..=10).or_null().eg(5).says("From -10 to 10; 5 for success, -5 for failure."))
        .may(
            "weight",
            schema::number(0).up_to(1).or_null().eg(1).says("How much it counts, from 0 to 1; 1 when absent."),
        )
        .may(
            "metadata",
            schema::either([schema::any_object().eg(json!({ "team": "red" })), schema::any_text(), schema::nothing()])
                .says("Stored with it."),
        );
    let form = schema::object("")
        .may(
            "feedback",
            schema::either([feedback, schema::nothing()]).says("A piece of feedback on the request's trace."),
        )
        .may("deny", schema::flag().or_null().says("As `deny` of the actions; of no effect on success."))
        .eg(json!({ "feedback": { "value": usual, "weight": 1 } }));
    schema::either([form, schema::choice(words), schema::nothing()]).says(says)
}

fn item() -> Schema {
    schema::shown("Guardrail", "guardrail")
        .need("name", name())
        .need("slug", schema::slug().eg("pg-no-sec-3f9a01"))
        .need("organisation_id", schema::uuid())
        .need("workspace_id", schema::uuid().or_null().says("Null for guardrails of the whole organisation."))
        .need("status", schema::choice(&["active", "archived"]))
        .need("owner_id", schema::uuid().or_null())
        .need("updated_by", schema::uuid().or_null())
        .need("created_at", schema::time())
        .need("last_updated_at", schema::time())
}

fn whole(item: &Schema) -> Schema {
    schema::object("WholeGuardrail")
        .with(item)
        .need("checks", checks())
        .need("actions", actions())
        .need("version_id", schema::uuid())
}

fn versions(whole: &Schema) -> Schema {
    let version = schema::object("GuardrailVersion")
        .with(whole)
        .need("version", schema::whole(1..=i64::MAX))
        .need("created_by", schema::uuid().or_null());
    schema::object("")
        .need("success", schema::fixed(true))
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX).says("All matches, on this page and others."))
        .need("data", schema::list(version))
}

fn written() -> Schema {
    schema::object("")
        .need("id", schema::uuid())
        .need("slug", schema::slug().eg("pg-no-sec-3f9a01"))
        .need("version_id", schema::uuid())
        .need("object", schema::fixed("guardrail"))
}

fn catalog() -> Schema {
    let hooks = schema::list(schema::choice(&["beforeRequestHook", "afterRequestHook"]));
    let parameters = json!({ "type": "object", "properties": { "rule": { "type": "string" } }, "required": ["rule"] });
    let check = schema::object("Check")
        .need("id", schema::any_text().eg("default.regexMatch").says("What guardrails name it by."))
        .need("name", schema::any_text().eg("Pattern"))
        .need("type", schema::choice(&["guardrail", "transformer"]).says("Whether it judges, or only changes."))
        .need("supported_hooks", hooks.says("Whether it looks at requests, answers or both."))
        .need("parameters", schema::any_object().eg(parameters).says("A JSON Schema of what the check is told."))
        .need(
            "plugin",
            schema::any_text().or_null().eg(Value::Null).says("Whose credentials it needs (POST /plugins)."),
        )
        .need("is_run", schema::flag().eg(true).says("Whether this version runs it. It runs all that it lists."));
    schema::object("CheckList")
        .need("object", schema::fixed("list"))
        .need("total", schema::whole(0..=i64::MAX))
        .need("data", schema::list(check))
}

fn trial() -> Schema {
    let body = || schema::any_object().or_null();
    let chat = json!({ "model": "gpt-4o", "messages": [{ "role": "user", "content": "my password is x" }] });
    schema::object("GuardrailTrial")
        .need("checks", checks())
        .may(
            "text",
            schema::any_text().or_null().eg("my password is x").says("A text, in place of request and response."),
        )
        .may("request", body().eg(chat).says("The body of a request."))
        .may("response", body().says("The body of an answer; beside it the request may stand."))
        .may("metadata", schema::any_object().or_null().says("What the request would say about itself."))
        .may(
            "run_remote",
            schema::flag().or_null().eg(false).says(
                "Whether webhooks and vendors are asked, with the organisation's own credentials; otherwise they say that \
                 they were not.",
            ),
        )
        .eg(json!({
            "checks": [{ "id": "default.contains", "parameters": { "operator": "none", "words": ["password"] } }],
            "text": "my password is x",
        }))
}

fn tried() -> Schema {
    let data = json!({ "explanation": "found 1 of 1 words" });
    let error = schema::object("")
        .need("name", schema::any_text().eg("NoText"))
        .need("message", schema::any_text().eg("there is no text to check").says("Why the check could not look."));
    let result = schema::object("CheckResult")
        .need("id", schema::any_text().eg("default.contains").says("The check."))
        .need("verdict", schema::flag().says("Whether it passes."))
        .need("data", schema::anything().eg(data).says("What it found; null when it could not look."))
        .need("transformed", schema::flag().says("Whether it changes what it looked at."))
        .may("transformed_data", schema::anything().says("The request or the answer as it would go on."))
        .may("error", error.says("Why it could not look."))
        .need("execution_time", schema::whole(0..=i64::MAX).says("Milliseconds that it took."))
        .need("fail_on_error", schema::flag().says("Whether an error counts as a failure."));
    schema::object("GuardrailTrialResult")
        .need("object", schema::fixed("guardrail-test"))
        .need("verdict", schema::flag().says("Whether all of them pass."))
        .need("checks", schema::list(result).says("What each check says, in the order of the request."))
}
