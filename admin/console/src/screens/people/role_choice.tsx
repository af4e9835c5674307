// A role that can be changed: chosen first, then asked for by a button, and reviewed before it is stored.
import { useSignal } from "@preact/signals";
import { t } from "../../i18n";
import { Review } from "../../kit/review";
import { notify } from "../../kit/surfaces";

interface RoleChoiceProps {
  /** Whose role it is, for readers of the screen. */
  title: string;
  role: string;
  roles: string[];
  send: (role: string, isTrial: boolean) => Promise<{ warnings?: string[] } | null>;
  done: () => void;
}

export function RoleChoice({ title, role, roles, send, done }: RoleChoiceProps) {
  const texts = t().people;
  const chosen = useSignal(role);
  const isReviewed = useSignal(false);
  return (
    <span class="row">
      <select class="plain" aria-label={texts.roleOf(title)} value={chosen.value} onChange={(event) => (chosen.value = event.currentTarget.value)}>
        {roles.map((one) => (
          <option key={one} value={one}>
            {texts.roles[one] ?? one}
          </option>
        ))}
      </select>
      {chosen.value !== role && (
        <button type="button" class="button small" onClick={() => (isReviewed.value = true)} aria-label={`${texts.changeRole}: ${title}`}>
          {texts.changeRole}
        </button>
      )}
      {isReviewed.value && (
        <Review
          title={texts.roleOf(title)} of={[{ path: "role", before: role, after: chosen.value }]} send={(isTrial) => send(chosen.value, isTrial)} close={() => (isReviewed.value = false)}
          again={done}
          done={() => {
            notify(t().review.saved);
            done();
          }}
        />
      )}
    </span>
  );
}
