import { type Column, column, DataTable } from '../parts/data-table.js';
import type { PageContent } from '../parts/layout.js';

/** A setting as people may see it: of a secret, only whether it is set. */
export interface ShownSetting {
  readonly name: string;
  readonly help: string;
  /** Undefined if it is unset, or a secret. */
  readonly value?: string | undefined;
  readonly isSecret: boolean;
  /** `default`: it is unset. */
  readonly from: 'environment' | 'file' | 'default';
  /** The effect while it is unset. */
  readonly unset: string;
}

export function settingsPage(settings: readonly ShownSetting[]): PageContent {
  return { title: 'Settings', body: <Settings settings={settings} /> };
}

function Settings({ settings }: { readonly settings: readonly ShownSetting[] }) {
  return (
    <>
      <h1>Settings</h1>
      <p class="lead">
        The settings with which this process started. Change them in its environment; they take effect at the next start.
      </p>
      <DataTable
        caption="Settings, their values and where they come from"
        rows={settings}
        keyOf={({ name }) => name}
        empty="No setting is known."
        columns={COLUMNS}
      />
    </>
  );
}

/** Help texts are Markdown. This removes code marks and links. */
const plain = (text: string) => text.replaceAll('`', '').replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');

const COLUMNS: readonly Column<ShownSetting>[] = [
  column('Setting', ({ name, help }) => (
    <>
      <code>{name}</code>
      <small class="why">{plain(help)}</small>
    </>
  )),
  column('Value', (setting) => <Value setting={setting} />),
  column('From', ({ from }) => FROM[from]),
];

const FROM = { environment: 'its variable', file: 'a file', default: 'the default' } as const;

function Value({ setting: { value, isSecret, from, unset } }: { readonly setting: ShownSetting }) {
  if (from === 'default') return <span class="none">{plain(unset)}</span>;
  return isSecret ? <span>set, and not shown</span> : <code>{value}</code>;
}
