import { encode } from 'uqr';
import { useMemo } from 'preact/hooks';

/** A QR code, drawn as one path. `label` says where it leads. Nothing is drawn if the text is too long for one. */
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
  try {
    const { data, size } = encode(text, { ecc: 'M', border: 4 });
    let path = '';
    data.forEach((row, y) => {
      row.forEach((dark, x) => {
        if (dark) path += `M${x} ${y}h1v1h-1z`;
      });
    });
    return { size, path };
  } catch {
    return null; // more than 2,331 bytes
  }
}
