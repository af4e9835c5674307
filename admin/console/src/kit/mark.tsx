// The sign of the product: a gate.
export const Mark = () => (
  <svg viewBox="0 0 16 16" aria-hidden="true">
    <path d="M2 15V6a6 6 0 0 1 12 0v9h-2.2V9.2H9.1V15H6.9V9.2H4.2V15zm2.2-8h2.7V3.2A4 4 0 0 0 4.2 6zm4.9 0h2.7V6a4 4 0 0 0-2.7-2.8z" />
  </svg>
);
