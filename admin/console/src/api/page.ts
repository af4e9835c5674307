// A page of a list, as the interface answers it.

export interface Page<T> {
  data: T[];
  /** How many there are on all pages. */
  total: number;
}
