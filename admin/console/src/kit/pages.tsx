// Below a list: how much of it is there, and the ways to the pages before and behind. The page stands in the address.
import { t } from "../i18n";
import { param, withParams } from "../nav/query";
import { count } from "./words";

/** From the address; the first page is 1. */
export const pageNumber = (name = "page") => Math.max(1, Math.trunc(Number(param(name))) || 1);

interface PagesProps {
  size: number;
  /** In the address; a list within another has one of its own. */
  name?: string;
  number: number;
  total: number;
  isCapped?: boolean;
}

export function Pages({ size, name = "page", number, total, isCapped = false }: PagesProps) {
  const page = pageNumber(name);
  // Of a page behind the end, too.
  const previous = Math.min(page - 1, Math.max(1, Math.ceil(total / size)));
  return (
    <div class="row wide inside">
      <span class="quiet">{t().state.ofMany(count(number), count(total), isCapped)}</span>
      <span class="row">
        {page > 1 && (
          <a class="button small" aria-label={t().state.previousPage} href={withParams({ [name]: previous > 1 ? String(previous) : null })}>
            ‹
          </a>
        )}
        {page * size < total && (
          <a class="button small" aria-label={t().state.nextPage} href={withParams({ [name]: String(page + 1) })}>
            ›
          </a>
        )}
      </span>
    </div>
  );
}
