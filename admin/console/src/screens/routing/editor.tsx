// A text of JSON with numbers at its lines, and what is wrong at which of them. An ordinary text field: readers of the screen,
// spelling of the keyboard and undo are the browser's own, and it weighs nothing.
import { useRef } from "preact/hooks";
import { t } from "../../i18n";
import { count, visible } from "../../kit/words";

export interface Mark {
  line: number;
  message: string;
}

interface EditorProps {
  label: string;
  text: string;
  marks: Mark[];
  isReadOnly?: boolean;
  change: (text: string) => void;
}

export function Editor({ label, text, marks, isReadOnly, change }: EditorProps) {
  const texts = t().routing;
  const area = useRef<HTMLTextAreaElement>(null);
  const numbers = useRef<HTMLDivElement>(null);
  const lines = text.split("\n");
  const go = (line: number) => {
    const begin = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0);
    area.current?.focus();
    area.current?.setSelectionRange(begin, begin + (lines[line - 1]?.length ?? 0));
  };
  const onKey = (event: KeyboardEvent) => {
    const field = area.current;
    if (event.key !== "Enter" || !field || isReadOnly) return;
    // A new line begins where the one before did.
    const before = text.slice(0, field.selectionStart);
    const indent = /[ \t]*/.exec(before.slice(before.lastIndexOf("\n") + 1))![0];
    event.preventDefault();
    // As if it were typed, so that it can be undone; a browser that does not know that gets it all the same.
    if (document.execCommand?.("insertText", false, `\n${indent}`)) return;
    field.setRangeText(`\n${indent}`, field.selectionStart, field.selectionEnd, "end");
    change(field.value);
  };
  return (
    <div class="editor">
      <div class="lines-and-text">
        <div ref={numbers} class="line-numbers" aria-hidden="true">
          {lines.map((_, index) => (
            <span key={index} class={marks.some(({ line }) => line === index + 1) ? "wrong" : ""}>
              {index + 1}
            </span>
          ))}
        </div>
        <textarea
          ref={area} aria-label={label} value={text} readOnly={isReadOnly} rows={Math.min(40, Math.max(12, lines.length + 1))} wrap="off" spellcheck={false} autocomplete="off"
          aria-invalid={marks.length > 0 ? true : undefined} aria-describedby={marks.length > 0 ? "editor-marks" : undefined}
          onInput={(event) => change(event.currentTarget.value)} onKeyDown={onKey}
          onScroll={(event) => {
            if (numbers.current) numbers.current.scrollTop = event.currentTarget.scrollTop;
          }}
        />
      </div>
      {marks.length > 0 && (
        <ul id="editor-marks" class="marks" role="alert">
          {marks.map(({ line, message }) => (
            <li key={`${line}/${message}`}>
              <button type="button" class="button small" onClick={() => go(line)}>
                {texts.line(count(line))}
              </button>{" "}
              <span lang="en">{visible(message)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
