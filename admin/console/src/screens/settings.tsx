// Settings of the organisation: its name and defaults, and what managers and members may do.
import { useEffect } from "preact/hooks";
import { getTagged, type Json } from "../api/call";
import { forget, useLoaded } from "../api/loaded";
import { may } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Denied, Empty, Part } from "../kit/states";
import { screen } from "../nav/query";
import { place } from "../nav/router";
import { Organisation } from "./settings/organisation";
import { Rights } from "./settings/rights";

const PARTS = {
  organisation: { path: "/admin/organisation", Form: Organisation },
  rights: { path: "/admin/organisation/security-settings", Form: Rights },
};

type PartName = keyof typeof PARTS;

export default function Settings() {
  const texts = t().settings;
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const asked = place.value.path.split("/")[1] || "organisation";
  const name = Object.hasOwn(PARTS, asked) ? (asked as PartName) : null;
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        {name && <AsText path={PARTS[name].path} />}
      </div>
      <nav class="tabs" aria-label={texts.title}>
        {(Object.keys(PARTS) as PartName[]).map((one) => (
          <a key={one} href={screen(`settings/${one}`)} aria-current={one === name ? "page" : undefined}>
            {texts.parts[one]}
          </a>
        ))}
      </nav>
      {!may("organisation_settings.read") ? <Denied /> : name ? <Loaded key={name} name={name} /> : <Empty title={t().state.notFound}>{t().state.notFoundWhy}</Empty>}
    </>
  );
}

function Loaded({ name }: { name: PartName }) {
  const { path, Form } = PARTS[name];
  const loaded = useLoaded<{ data: Json; tag: string }>(`settings ${name}`, () => getTagged(path));
  const again = () => {
    forget();
    loaded.reload();
  };
  return (
    <section class="panel">
      <div class="inside">
        <Part state={loaded.state.value} again={loaded.reload} lines={10}>
          {({ data, tag }) => <Form key={tag + JSON.stringify(data)} of={data} tag={tag} path={path} again={again} />}
        </Part>
      </div>
    </section>
  );
}
