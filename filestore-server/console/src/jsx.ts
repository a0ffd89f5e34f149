// What JSX becomes. The build injects it, so that no file imports it.
export { Fragment, h } from 'preact';
