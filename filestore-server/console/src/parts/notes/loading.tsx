import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';

/** Shows its children after 300 ms, so that a quick reply does not flash. */
export function Late({ children }: { children: ComponentChildren }) {
  const [late, setLate] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setLate(true), 300);
    return () => clearTimeout(timer);
  }, []);
  return <>{late && children}</>;
}

/** Quiet blocks in the geometry of the rows that will come. */
export function Blocks({ rows = 5, label = 'Loading' }: { rows?: number; label?: string }) {
  return (
    <div class="blocks" role="status" aria-label={label}>
      <Late>
        {Array.from({ length: rows }, (_, index) => (
          <span key={index} class="block" />
        ))}
      </Late>
    </div>
  );
}
