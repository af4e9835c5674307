// One config: its text and its tree, the review of a change before it is stored, and its versions.
import { useSignal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { call, Fault, getTagged } from "../../api/call";
import { draftOf, keepDraft } from "../../api/drafts";
import { forget, useLoaded } from "../../api/loaded";
import { may, session, workspace, workspaceName, workspaceSlug } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { differences } from "../../kit/difference";
import { Review } from "../../kit/review";
import { Part } from "../../kit/states";
import { Confirm, notify } from "../../kit/surfaces";
import { visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { historyOf, screen } from "../../nav/query";
import { go } from "../../nav/router";
import { Editor, type Mark } from "./editor";
import { marksOf, parsed } from "./marks";
import { Tree, tree } from "./tree";
import { written, type Config } from "./types";
import { Versions } from "./versions";

export function ConfigPage({ id }: { id: string }) {
  const path = `/configs/${encodeURIComponent(id)}`;
  const config = useLoaded<{ data: Config; tag: string }>(`config ${id} ${workspace.value}`, () => getTagged<Config>(path));
  const state = config.state.value;
  const again = () => {
    forget();
    config.reload();
  };
  return (
    <>
      <div class="head">
        <h1>{visible(state.data?.data.name ?? t().routing.title)}</h1>
        <a class="button" href={screen("routing")}>
          {t().routing.all}
        </a>
        {state.data && <AsText path={path} file={fileOf(state.data.data)} />}
      </div>
      <Part state={state} again={config.reload} lines={12}>
        {({ data, tag }) => <OneConfig config={data} tag={tag} path={path} again={again} />}
      </Part>
    </>
  );
}

/** The document of the command line's files that makes it. */
const fileOf = ({ workspace_id, slug, name, data }: Config) => ({
  kind: "config" as const, workspace: workspaceSlug(workspace_id), name: slug, spec: { name, config: data.config },
});

interface OneConfigProps {
  config: Config;
  tag: string;
  path: string;
  again: () => void;
}

/**
 * The draft stays while the config is read again or another version comes back, so that a change of somebody else can be taken
 * over by hand, and is still there for whoever returns from elsewhere.
 */
function OneConfig({ config, tag, path, again }: OneConfigProps) {
  const texts = t().routing;
  const draftName = `${session.value!.user.id} ${config.id}`;
  const draft = draftOf(draftName);
  const marks = useSignal<Mark[]>([]);
  const reviewed = useSignal<Record<string, unknown> | null>(null);
  const stored = written(config.data.config);
  const text = draft ?? stored;
  const write = (next: string | null) => {
    keepDraft(draftName, next === stored ? null : next);
    marks.value = [];
  };
  const drawn = useMemo(() => tree(parsed(text).value ?? config.data.config), [text, config]);
  const mayChange = may("configs.update");
  const review = () => {
    const { value, wrong } = parsed(text);
    marks.value = wrong;
    reviewed.value = value;
  };
  const send = async (isTrial: boolean) => {
    try {
      return await call("PUT", path, { body: { config: reviewed.value }, query: { dry_run: isTrial || undefined }, headers: { "if-match": tag } });
    } catch (error) {
      if (error instanceof Fault) marks.value = marksOf(text, error);
      throw error;
    }
  };
  const changed = () => {
    notify(t().review.saved);
    again();
  };
  return (
    <>
      <dl class="facts">
        <dt>{texts.slug}</dt>
        <dd>
          <code>{config.slug}</code>
        </dd>
        <dt>{t().menu.workspace}</dt>
        <dd>{visible(workspaceName(config.workspace_id))}</dd>
      </dl>
      <div class="split">
        <section class="panel">
          <header>
            <h2>{texts.text}</h2>
            <span class="quiet">{mayChange ? (text !== stored ? texts.draft : "") : t().state.readOnly}</span>
          </header>
          <div class="inside form wide">
            <Editor
              label={texts.text} text={text} marks={marks.value} isReadOnly={!mayChange} change={write}
            />
            {mayChange && (
              <div class="row">
                <button type="button" class="button main" disabled={text === stored} onClick={review}>
                  {t().review.look}
                </button>
                <button type="button" class="button" disabled={text === stored} onClick={() => write(null)}>
                  {texts.discard}
                </button>
              </div>
            )}
          </div>
        </section>
        <div class="form">
          <section class="panel">
            <header>
              <h2>{texts.tree}</h2>
            </header>
            <div class="inside">
              <Tree of={drawn} />
            </div>
          </section>
          <Links config={config} />
          <Versions config={config} tag={tag} path={path} changed={changed} />
          {may("configs.delete") && <Removal config={config} tag={tag} path={path} />}
        </div>
      </div>
      {reviewed.value && (
        <Review
          title={t().review.title(visible(config.name))} of={differences(config.data.config, reviewed.value)} send={send} close={() => (reviewed.value = null)}
          done={() => {
            write(null);
            changed();
          }}
          again={() => {
            reviewed.value = null;
            again();
          }}
        />
      )}
    </>
  );
}

/** Where its calls and its history are, and how a request is explained by it. */
function Links({ config }: { config: Config }) {
  const texts = t().routing;
  const sample = {
    path: "/v1/chat/completions", workspace_id: config.workspace_id, headers: { "x-gateway-config": config.slug }, body: { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }] },
  };
  return (
    <div class="row">
      {may("logs.list") && (
        <a class="button" href={screen("logs", { config: config.slug })}>
          {texts.calls}
        </a>
      )}
      {may("audit_logs.list") && (
        <a class="button" href={historyOf(config.id)}>
          {t().audit.history}
        </a>
      )}
      <AsText label={texts.explain} method="POST" path="/explain" body={sample} />
    </div>
  );
}

function Removal({ config, tag, path }: { config: Config; tag: string; path: string }) {
  const texts = t().routing;
  const isAsked = useSignal(false);
  const work = useWork();
  const remove = async () => {
    if (!(await work.run(() => call("DELETE", path, { headers: { "if-match": tag } })))) return;
    forget();
    notify(texts.removed);
    go(screen("routing"));
  };
  return (
    <div>
      <button type="button" class="button bad" onClick={() => (isAsked.value = true)}>
        {texts.remove}
      </button>
      {isAsked.value && (
        <Confirm
          title={`${texts.remove}: ${visible(config.name)}`} text={texts.removeWhy} button={texts.remove} isBad fault={work.fault.value} isBusy={work.isBusy.value} confirm={() => void remove()}
          close={() => (isAsked.value = false)}
        />
      )}
    </div>
  );
}
