export function Dock() {
  return null;
}
export function SideProgress() {
  return null;
}
