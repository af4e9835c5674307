// The versions of a config: what each changed, and the way back to it. Going back makes a new version, after the same review.
import { useSignal } from "@preact/signals";
import { get, post } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import type { Page } from "../../api/page";
import { may, nameOf, session, workspace } from "../../api/session";
import { useKeyNames } from "../../api/names";
import { t } from "../../i18n";
import { differences } from "../../kit/difference";
import { DifferenceTable } from "../../kit/difference_table";
import { Review } from "../../kit/review";
import { Part } from "../../kit/states";
import { count, dateAndTime, visible } from "../../kit/words";
import type { Config, Version } from "./types";

const MAX_VERSIONS = 50;

interface VersionsProps {
  config: Config;
  tag: string;
  path: string;
  changed: () => void;
}

export function Versions({ config, tag, path, changed }: VersionsProps) {
  const texts = t().routing;
  const versions = useLoaded<Page<Version>>(`versions ${config.id} ${config.version_id} ${workspace.value}`, () => get(`${path}/versions`, { page_size: MAX_VERSIONS }));
  const compared = useSignal<string | null>(null);
  const chosen = useSignal<Version | null>(null);
  const keyName = useKeyNames();
  const me = session.value!.user;
  const author = (id: string | null) => (id === me.id ? nameOf(me) : keyName(id));
  const send = (isTrial: boolean) => post(`${path}/rollback`, { version_id: chosen.value!.version_id }, { query: { dry_run: isTrial || undefined }, headers: { "if-match": tag } });
  return (
    <section class="panel">
      <header>
        <h2>{texts.versions}</h2>
      </header>
      <Part state={versions.state.value} again={versions.reload} lines={3}>
        {({ data, total }) => (
          <>
            <ul class="attention">
              {data.map((one, index) => {
                const isCurrent = one.version_id === config.version_id;
                const before = data[index + 1];
                const isOpen = compared.value === one.version_id;
                return (
                  <li key={one.version_id}>
                    <strong>{texts.version(count(one.version))}</strong>
                    <span class="quiet">
                      {dateAndTime(new Date(one.created_at))} · {visible(author(one.created_by))}
                    </span>
                    <span class="row">
                      {before && (
                        <button type="button" class="button small" aria-expanded={isOpen} onClick={() => (compared.value = isOpen ? null : one.version_id)} aria-label={`${texts.difference}: ${texts.version(count(one.version))}`}>
                          {texts.difference}
                        </button>
                      )}
                      {isCurrent ? (
                        <span class="quiet">{texts.current}</span>
                      ) : (
                        may("configs.update") && (
                          <button type="button" class="button small" onClick={() => (chosen.value = one)} aria-label={`${texts.rollback}: ${texts.version(count(one.version))}`}>
                            {texts.rollback}
                          </button>
                        )
                      )}
                    </span>
                    {isOpen && before && <DifferenceTable of={differences(before.data.config, one.data.config)} />}
                  </li>
                );
              })}
            </ul>
            {total > data.length && <p class="inside quiet">{t().state.ofMany(count(data.length), count(total), false)}</p>}
          </>
        )}
      </Part>
      {chosen.value && (
        <Review
          title={`${texts.rollback}: ${texts.version(count(chosen.value.version))}`} of={differences(config.data.config, chosen.value.data.config)} send={send} close={() => (chosen.value = null)}
          done={changed}
        />
      )}
    </section>
  );
}
