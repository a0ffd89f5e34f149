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
import './data/offline';
import { applyTheme } from './shell/theme';

// The page names its icon relative to its first address. Later addresses have other depths.
const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
if (icon) icon.href = String(icon.href);
applyTheme();
listen();
void start();
const place = document.getElementById('page');
if (place) render(<App />, place);
