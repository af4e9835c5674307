// A secret that is shown now and never again. It lives in the state of whoever asked for it.
import { Copy } from "./basics";

export const OneTimeSecret = ({ text, hint }: { text: string; hint: string }) => (
  <div class="form" role="status">
    <p class="quiet">{hint}</p>
    <div class="secret">
      <code>{text}</code>
      <Copy text={text} />
    </div>
  </div>
);
