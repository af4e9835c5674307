// Whether the palette is open: asked for by shortcuts and by the button of the bar.
import { signal } from "@preact/signals";

export const isPaletteOpen = signal(false);
