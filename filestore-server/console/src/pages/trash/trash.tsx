import { Page } from '../../shell/page';

export function TrashPage() {
  return <Page title="Trash" />;
}
