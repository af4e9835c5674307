// What a failing part leaves of the page: itself alone is replaced by a sentence. Logs have bodies of strangers, and one that
// nobody thought of must not take the whole page away. A `key` gives the next object a new try.
import { Component, type ComponentChildren } from "preact";
import { Fault } from "../api/call";
import { t } from "../i18n";
import { Failed } from "./states";

export class Boundary extends Component<{ children: ComponentChildren }, { error?: unknown }> {
  static override getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    const words = error instanceof Error ? error.message : "";
    return <Failed fault={new Fault(-1, `${t().state.broken}. ${words}`, "", "", "", [], null)} again={() => this.setState({ error: undefined })} />;
  }
}
