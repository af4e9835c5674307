// Whether single letters are shortcuts: people who dictate or tremble switch them off. Remembered by the browser.
import { signal } from "@preact/signals";

export const areLettersOn = signal(readLetters());

function readLetters(): boolean {
  try {
    return localStorage.getItem("letters") !== "off";
  } catch {
    return true;
  }
}

export function setLetters(isOn: boolean): void {
  areLettersOn.value = isOn;
  try {
    localStorage.setItem("letters", isOn ? "on" : "off");
  } catch {
    // Chosen for this page alone.
  }
}
