// A dialog that is open for as long as its part is there. It is closed before it goes, so that the focus returns to where it
// was; an element that is only removed leaves it nowhere.
import { useEffect, useRef } from "preact/hooks";

export function useModal() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  return dialog;
}
