// By what figures are grouped: what the gateway knows of every call, or a name that applications put into metadata.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { visible } from "../../kit/words";
import { setParams } from "../../nav/query";
import { byMetadata, GROUP_NAMES, type Grouping } from "./measures";

const METADATA = "metadata";

export function GroupChoice({ grouping }: { grouping: Grouping }) {
  const texts = t().analytics;
  const isNaming = useSignal(false);
  const text = useSignal("");
  const choose = (by: string) => {
    isNaming.value = by === METADATA;
    if (!isNaming.value) setParams({ by: by === "model" ? null : by });
  };
  return (
    <>
      <select class="plain" aria-label={texts.by} value={isNaming.value ? METADATA : grouping.text} onChange={(event) => choose(event.currentTarget.value)}>
        {GROUP_NAMES.map((name) => (
          <option key={name} value={name}>
            {texts.byName(texts.groups[name])}
          </option>
        ))}
        {grouping.name === null && <option value={grouping.text}>{texts.byName(visible(grouping.text))}</option>}
        <option value={METADATA}>{texts.metadata}</option>
      </select>
      {isNaming.value && (
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault();
            isNaming.value = false;
            setParams({ by: byMetadata(text.value.trim()) });
          }}
        >
          <input required pattern=".*\S.*" maxLength={128} aria-label={texts.metadataName} placeholder="team" value={text.value} onInput={(event) => (text.value = event.currentTarget.value)} />
          <button type="submit" class="button">
            {texts.group}
          </button>
        </form>
      )}
    </>
  );
}
