import type { ComponentChildren } from 'preact';
import { mayAct } from '../../api/plumbing/caller.js';
import type { ApiCall } from '../../api/plumbing/in-process-api.js';
import { ACTIONS, type Action, type ActionName, labelOf, roleFor } from './actions.js';
import { useAddress, useView } from './view.js';

interface ActionFormProps {
  readonly name: ActionName;
  readonly fields: Readonly<Record<string, string>>;
  /** The page that follows the action. Default: the page with the button. */
  readonly back?: string;
  /** The id of the element that describes the button, if several buttons of a page have the same name. */
  readonly describedBy?: string;
  readonly label?: string;
  readonly children?: ComponentChildren;
}

/** The button of an action, shown only to people who may do it. */
export function ActionForm({ name, fields, back, describedBy, label, children }: ActionFormProps) {
  const { address: here } = useView();
  const may = useMay();
  const address = useAddress();
  const action: Action = ACTIONS[name];
  if (!may(name)) return null;
  return (
    <form class="action" method="post" action={address(`/act/${name}`)}>
      <FormFields fields={{ ...fields, back: back ?? here.split('?')[0]! }} />
      {children}
      <button class={action.tone} aria-describedby={describedBy}>
        {label ?? labelOf(action, fields)}
      </button>
    </form>
  );
}

/** Hidden fields, and the session's CSRF token. */
export function FormFields({ fields }: { readonly fields: Readonly<Record<string, string>> }) {
  const { viewer } = useView();
  return (
    <>
      {Object.entries({ csrf: viewer?.csrf ?? '', ...fields }).map(([name, value]) => (
        <input key={name} type="hidden" name={name} value={value} />
      ))}
    </>
  );
}

export function useMay(): (name: ActionName) => boolean {
  const { viewer } = useView();
  return (name) => viewer !== undefined && mayAct(viewer.caller, roleFor(name));
}

export interface Command {
  readonly label: string;
  readonly call: ApiCall;
}

/** A call that only reads. */
export function get(label: string, path: ApiCall['path']): Command {
  return { label, call: { method: 'GET', path } };
}

/** The calls of the buttons and of the page itself, as shell commands. */
export function AsCommands({ commands }: { readonly commands: readonly Command[] }) {
  const { publicUrl } = useView();
  if (commands.length === 0) return null;
  return (
    <details class="commands">
      <summary>As a command</summary>
      {commands.map(({ label, call }) => (
        <figure key={label}>
          <figcaption>{label}</figcaption>
          <pre tabIndex={0} aria-label={`Command: ${label}`}>
            {curlOf(publicUrl, call)}
          </pre>
        </figure>
      ))}
      <p class="hint">
        <code>MUSTER_TOKEN</code> holds an access token. <code>/api/docs</code> describes every call.
      </p>
    </details>
  );
}

export function useCommands(names: readonly ActionName[], fields: Readonly<Record<string, string>>): Command[] {
  const may = useMay();
  return names.filter(may).map((name) => {
    const action: Action = ACTIONS[name];
    return { label: labelOf(action, fields), call: action.call(fields) };
  });
}

function curlOf(publicUrl: string, { method, path, body }: ApiCall): string {
  return [
    `curl -sS${method === 'GET' ? '' : ` -X ${method}`} ${quoted(publicUrl + path)}`,
    `  -H "Authorization: Bearer $MUSTER_TOKEN"`,
    ...(body === undefined ? [] : [`  -H 'Content-Type: application/json'`, `  -d ${quoted(JSON.stringify(body))}`]),
  ].join(' \\\n');
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
