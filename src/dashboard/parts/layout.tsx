import type { ComponentChildren } from 'preact';
import { renderToString } from 'preact-render-to-string';
import { findAction } from './actions.js';
import { numberText, ZoneOfTimes } from './shown-values.js';
import { wholeText } from './times.js';
import { useAddress, useView, type View, ViewContext, type Viewer } from './view.js';

export interface PageContent {
  readonly title: string;
  readonly status?: number;
  readonly body: ComponentChildren;
}

const NAVIGATION = [
  ['/', 'Overview'],
  ['/issues', 'Issues'],
  ['/holds', 'Holds'],
  ['/companies', 'Companies'],
  ['/records', 'Records'],
  ['/runs', 'Runs'],
  ['/certificates', 'Certificates'],
  ['/schema', 'Schema'],
  ['/notifications', 'Notifications'],
  ['/audit', 'Audit'],
  ['/queue', 'Queue'],
  ['/tokens', 'Tokens'],
  ['/settings', 'Settings'],
] as const;

/** Details that a person has opened stay open when the page updates itself. */
const HTMX = JSON.stringify({ includeIndicatorCSS: false, morphIgnore: ['data-htmx-powered', 'open'] });

/** The whole document, with everything escaped. */
export function renderPage(view: View, content: PageContent): string {
  return `<!doctype html>${renderToString(
    <ViewContext.Provider value={view}>
      <Document {...content} />
    </ViewContext.Provider>,
  )}`;
}

function Document({ title, body }: PageContent) {
  const { viewer, assets } = useView();
  const address = useAddress();
  return (
    <html lang="en">
      <head>
        <meta charSet="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="htmx-config" content={HTMX} />
        <title>{`${title} · Muster`}</title>
        <link rel="stylesheet" href={address(assets.sheet)} />
        <link rel="icon" href={address('/favicon.svg')} type="image/svg+xml" />
      </head>
      <body class={viewer ? undefined : 'alone'}>
        {viewer && (
          <a class="skip" href="#content">
            To the content
          </a>
        )}
        {viewer && <Header {...viewer} />}
        <main id="content" tabIndex={-1}>
          {viewer && <PrintedHead title={title} />}
          <Notice />
          {body}
          {viewer && <ZoneOfTimes />}
        </main>
        {viewer && assets.scripts.map((script) => <script key={script} src={address(script)} defer />)}
      </body>
    </html>
  );
}

function Header({ caller, csrf }: Viewer) {
  const { address: here, counts } = useView();
  const address = useAddress();
  const section = `/${here.split(/[/?]/)[1]}`;
  return (
    <header class="bar">
      <a class="brand" href={address('/')} aria-label="Muster, to the overview">
        <svg viewBox="0 0 24 24" aria-hidden="true">
          <path d="M4 6h16M4 12h10M4 18h7" />
          <path d="m14 17 3 3 5-6" />
        </svg>
        <span>Muster</span>
      </a>
      <nav aria-label="Pages">
        <ul>
          {NAVIGATION.map(([path, name]) => (
            <li key={path}>
              <a href={address(path)} aria-current={path === section ? 'page' : undefined}>
                {name}
              </a>
              {path === '/issues' && <Count of={counts?.issues} word="open" />}
              {path === '/holds' && <Count of={counts?.holds} word="open" />}
            </li>
          ))}
        </ul>
      </nav>
      <form class="who" method="post" action={address('/logout')}>
        <span>
          {caller.name} <small>{caller.role}</small>
        </span>
        <input type="hidden" name="csrf" value={csrf} />
        <button class="quiet">Sign out</button>
      </form>
    </header>
  );
}

/** How many wait, next to the link, whose name stays the same. Nothing where the number is zero or unknown. */
function Count({ of: count = 0, word }: { readonly of: number | undefined; readonly word: string }) {
  if (count === 0) return null;
  return (
    <span class="badge">
      {numberText(count)}
      <span class="unseen"> {word}</span>
    </span>
  );
}

/** Says that the previous action was done. The address names the action, and only known names show a message. */
function Notice() {
  const { done, undone } = useView();
  const action = done === undefined ? undefined : findAction(done);
  if (undone !== undefined) return <NotDone name={undone} />;
  return action ? (
    <p class="notice good" role="status">
      {action.done}
    </p>
  ) : null;
}

/** Says that the session had ended when a button was pressed. */
export function NotDone({ name }: { readonly name: string }) {
  const action = findAction(name);
  return (
    <p class="notice warn" role="alert">
      Your session had ended. Nothing was done: {action ? <>“{action.label}” was not pressed.</> : 'the form was not sent.'}
    </p>
  );
}

/** The head of a page on paper, where neither the bar nor the address of the browser is: what was printed, when, and from which installation. */
function PrintedHead({ title }: { readonly title: string }) {
  const { address, now, publicUrl, timezone } = useView();
  return (
    <p class="printed">
      <b>{title}</b>
      <span>{wholeText(now, timezone)}</span>
      <span>{publicUrl + address}</span>
    </p>
  );
}
