// People: who belongs to the organisation or to a workspace, who is invited, and which workspaces there are. Which of these
// parts are there depends on the role, and on whether one workspace is looked at or all of them.
import { useEffect } from "preact/hooks";
import { may, workspace } from "../api/session";
import { t } from "../i18n";
import { Denied } from "../kit/states";
import { screen } from "../nav/query";
import { place } from "../nav/router";
import { Invites } from "./people/invites";
import { Members } from "./people/members";
import { Users } from "./people/users";
import { Workspaces } from "./people/workspaces";

const PARTS = {
  members: { isOffered: () => workspace.value !== "*" && may("workspace_users.list"), Part: () => <Members of={workspace.value} /> },
  users: { isOffered: () => may("organisation_users.list"), Part: Users },
  invitations: { isOffered: () => may("organisation_users.list"), Part: Invites },
  workspaces: { isOffered: () => may("workspaces.list"), Part: Workspaces },
};

type PartName = keyof typeof PARTS;

export default function People() {
  const texts = t().people;
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const offered = (Object.keys(PARTS) as PartName[]).filter((name) => PARTS[name].isOffered());
  const asked = place.value.path.split("/")[1];
  const name = asked === undefined ? offered[0] : offered.find((one) => one === asked);
  const Part = name && PARTS[name].Part;
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
      </div>
      <nav class="tabs" aria-label={texts.title}>
        {offered.map((one) => (
          <a key={one} href={screen(`people/${one}`)} aria-current={one === name ? "page" : undefined}>
            {texts.parts[one]}
          </a>
        ))}
      </nav>
      {Part ? <Part key={name} /> : <Denied />}
    </>
  );
}
