// Below a list: how much of it is there, and the ways to the pages before and behind. The page stands in the address.
import { t } from "../i18n";
import { param, withParams } from "../nav/query";
import { count } from "./words";

/** From the address; the first page is 1. */
export const pageNumber = () => Math.max(1, Math.trunc(Number(param("page"))) || 1);

interface PagesProps {
  size: number;
  number: number;
  total: number;
  isCapped?: boolean;
}

export function Pages({ size, number, total, isCapped = false }: PagesProps) {
  const page = pageNumber();
  return (
    <div class="row wide inside">
      <span class="quiet">{t().state.ofMany(count(number), count(total), isCapped)}</span>
      <span class="row">
        {page > 1 && (
          <a class="button small" aria-label={t().state.previousPage} href={withParams({ page: page > 2 ? String(page - 1) : null })}>
            ‹
          </a>
        )}
        {page * size < total && (
          <a class="button small" aria-label={t().state.nextPage} href={withParams({ page: String(page + 1) })}>
            ›
          </a>
        )}
      </span>
    </div>
  );
}
