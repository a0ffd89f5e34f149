import { useMemo } from 'preact/hooks';
import { qr } from '../../text/qr';

/** A QR code, drawn as one path with its quiet zone. `label` says where it leads. Nothing is drawn if the text is too long. */
export function Qr({ text, label, size = 160 }: { text: string; label: string; size?: number }) {
  const code = useMemo(() => draw(text), [text]);
  if (!code) return null;
  return (
    <svg
      class="qr"
      role="img"
      aria-label={label}
      width={size}
      height={size}
      viewBox={`0 0 ${code.size} ${code.size}`}
      shape-rendering="crispEdges"
    >
      <path class="qr-ground" d={`M0 0h${code.size}v${code.size}h${-code.size}z`} />
      <path class="qr-ink" d={code.path} />
    </svg>
  );
}

function draw(text: string): { size: number; path: string } | null {
  const modules = qr(text);
  if (!modules) return null;
  const path = modules.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x + 4} ${y + 4}h1v1h-1z` : ''))).join('');
  return { size: modules.length + 8, path };
}
