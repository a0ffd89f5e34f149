import { Page } from '../../shell/page';

export function StartPage() {
  return <Page title="filestore" />;
}
