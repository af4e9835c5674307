// What managers and members may do, and what of logs the organisation's admins see: a table of rights by role.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { mayChangeSettings, SettingsForm, type FormProps } from "./save";

const ROLES = ["members", "managers", "organisationAdmins"] as const;
type Role = (typeof ROLES)[number];

/** `membersViewLogs` → members, ViewLogs. A right that the interface adds later is a row by its own name. */
export function partsOf(name: string): { role: Role; right: string } | null {
  const role = ROLES.find((one) => name.startsWith(one));
  return role && name.length > role.length ? { role, right: name.slice(role.length) } : null;
}

export function Rights(props: FormProps) {
  const texts = t().settings;
  const switches = Object.fromEntries(Object.entries(props.of).filter(([name, value]) => typeof value === "boolean" && partsOf(name)));
  const values = useSignal<Record<string, unknown>>(switches);
  const rights = [...new Set(Object.keys(switches).map((name) => partsOf(name)!.right))];
  return (
    <SettingsForm {...props} before={switches} after={values.value} body={(changed) => changed}>
      <p class="quiet">{texts.rightsWhy}</p>
      <div class="scroll">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{texts.right}</th>
              {ROLES.map((role) => (
                <th key={role} scope="col">
                  {texts.roles[role]}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rights.map((right) => (
              <tr key={right}>
                <th scope="row">{texts.rights[right] ?? right}</th>
                {ROLES.map((role) => {
                  const name = role + right;
                  return (
                    <td key={role}>
                      {name in switches ? (
                        <input
                          type="checkbox" class="switch" aria-label={`${texts.rights[right] ?? right}: ${texts.roles[role]}`} checked={values.value[name] === true} disabled={!mayChangeSettings()}
                          onChange={(event) => (values.value = { ...values.value, [name]: event.currentTarget.checked })}
                        />
                      ) : (
                        <span class="quiet">–</span>
                      )}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </SettingsForm>
  );
}
