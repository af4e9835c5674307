// In which workspace something new is made: the one that is looked at, or any of them with all in view. So it is found where
// its maker looks, and is offered nowhere that they may not make it.
import { session, workspace, type Workspace } from "../api/session";
import { t } from "../i18n";
import { Field } from "./basics";
import { visible } from "./words";

export function workspaceChoices(): Workspace[] {
  const { workspaces } = session.value!;
  return workspace.value === "*" ? workspaces : workspaces.filter(({ id, slug }) => slug === workspace.value || id === workspace.value);
}

interface WorkspaceFieldProps {
  /** A slug. */
  value: string;
  wrong?: string;
  /** What may be chosen besides, with an empty value. */
  none?: string;
  change: (slug: string) => void;
}

export const WorkspaceField = ({ value, wrong, none, change }: WorkspaceFieldProps) => (
  <Field label={t().menu.workspace} wrong={wrong}>
    {(control) => (
      <select {...control} value={value} onChange={(event) => change(event.currentTarget.value)}>
        {workspaceChoices().map(({ slug, name }) => (
          <option key={slug} value={slug}>
            {visible(name)}
          </option>
        ))}
        {none && <option value="">{none}</option>}
      </select>
    )}
  </Field>
);
