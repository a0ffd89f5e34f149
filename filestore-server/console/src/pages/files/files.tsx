import { Page } from '../../shell/page';

export function FilesPage() {
  return <Page title="Files" />;
}
