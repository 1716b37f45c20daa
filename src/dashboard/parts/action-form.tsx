import type { ComponentChildren } from 'preact';
import { mayAct } from '../../api/plumbing/caller.js';
import type { ApiCall } from '../../api/plumbing/in-process-api.js';
import { ACTIONS, type Action, type ActionName } from './actions.js';
import { useAddress, useView } from './view.js';

interface ActionFormProps {
  readonly name: ActionName;
  readonly fields: Readonly<Record<string, string>>;
  /** The page that is shown once it is done; the one with the button unless said. */
  readonly back?: string;
  /** The id of what the button is about, where several buttons of a page have one name. */
  readonly describedBy?: string;
  /** Where another text than that of the action says it better. */
  readonly label?: string;
  /** Fields that a person fills in. */
  readonly children?: ComponentChildren;
}

/** The button of an action, for those who may do it. */
export function ActionForm({ name, fields, back, describedBy, label, children }: ActionFormProps) {
  const { viewer, address: here } = useView();
  const address = useAddress();
  const action: Action = ACTIONS[name];
  if (!viewer || !mayAct(viewer.caller, action.role)) return null;
  return (
    <form class="action" method="post" action={address(`/act/${name}`)}>
      <FormFields fields={{ ...fields, back: back ?? here.split('?')[0]! }} />
      {children}
      <button class={action.tone} aria-describedby={describedBy}>
        {label ?? action.label}
      </button>
    </form>
  );
}

/** Hidden fields, and the text without which no form of the session is taken. */
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

/** Whether the person who looks at the page may do this. */
export function useMay(): (name: ActionName) => boolean {
  const { viewer } = useView();
  return (name) => viewer !== undefined && mayAct(viewer.caller, ACTIONS[name].role);
}

interface Command {
  readonly label: string;
  readonly call: ApiCall;
}

/** The commands that do what the buttons beside them do, and of the page itself the call that it shows. */
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

/** Commands for these actions, as far as the person may do them. */
export function useCommands(names: readonly ActionName[], fields: Readonly<Record<string, string>>): Command[] {
  const may = useMay();
  return names.filter(may).map((name) => ({ label: ACTIONS[name].label, call: ACTIONS[name].call(fields) }));
}

function curlOf(publicUrl: string, { method, path, body }: ApiCall): string {
  return [
    `curl -sS${method === 'GET' ? '' : ` -X ${method}`} ${quoted(publicUrl + path)}`,
    `  -H "Authorization: Bearer $MUSTER_TOKEN"`,
    ...(body === undefined ? [] : [`  -H 'Content-Type: application/json'`, `  -d ${quoted(JSON.stringify(body))}`]),
  ].join(' \\\n');
}

const quoted = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
