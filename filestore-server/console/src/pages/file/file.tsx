import { Page } from '../../shell/page';

export function FilePage() {
  return <Page title="File" />;
}
