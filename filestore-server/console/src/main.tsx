// The start of the console: styles, the session, and the page.
import './style/tokens.css';
import './style/base.css';
import './style/parts.css';
import './style/files.css';
import './style/store.css';
import './style/uploads.css';
import { render } from 'preact';
import { App } from './app';
import { listen } from './router';
import { start } from './session';
import { applyTheme } from './shell/theme';

applyTheme();
listen();
void start();
const place = document.getElementById('page');
if (place) render(<App />, place);
