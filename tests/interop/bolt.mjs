// The official Bolt as an app of the Slack in the tests: node bolt.mjs FOLDER API_URL APP_TOKEN BOT_TOKEN
// Prints one line of JSON for each thing that reached it, after its own validation.
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [folder, slackApiUrl, appToken, token] = process.argv.slice(2);
const { App, LogLevel } = createRequire(join(folder, 'package.json'))('@slack/bolt');
const say = (what) => console.log(JSON.stringify(what));

const app = new App({ token, appToken, socketMode: true, logLevel: LogLevel.ERROR, clientOptions: { slackApiUrl: `${slackApiUrl}/` } });
const plain = (text) => ({ type: 'plain_text', text });

app.action('send', async ({ ack, body, action, client }) => {
  await ack();
  const answered = { type: 'section', text: plain('Answered') };
  await client.chat.update({ channel: body.channel.id, ts: body.message.ts, text: 'Answered', blocks: [answered] });
  say({ action: action.value, user: body.user.id, values: body.state.values });
});
app.action('reason', async ({ ack, body, client }) => {
  await ack();
  const input = { type: 'input', block_id: 'why', label: plain('Why?'), element: { type: 'plain_text_input', action_id: 'text' } };
  const view = { type: 'modal', callback_id: 'reason', title: plain('Abort'), submit: plain('Abort'), blocks: [input] };
  const opened = await client.views.open({ trigger_id: body.trigger_id, view });
  say({ form: opened.view.id });
});
app.view('reason', async ({ ack, body, view }) => {
  await ack();
  say({ reason: view.state.values.why.text.value, user: body.user.id });
});
app.message(async ({ message, client }) => {
  await client.chat.postEphemeral({ channel: message.channel, user: message.user, text: 'heard' });
  say({ message: message.text, thread: message.thread_ts ?? null });
});
app.error(async (error) => say({ error: String(error) }));

await app.start();
const { channel } = await app.client.conversations.open({ users: 'U1' });
const sent = await app.client.chat.postMessage({
  channel: channel.id,
  text: 'a question',
  blocks: [
    { type: 'section', text: plain('Which db?') },
    {
      type: 'actions', block_id: 'pml:abcde:3:0',
      elements: [{ type: 'radio_buttons', action_id: 'choice', options: [{ text: plain('pg'), value: '0' }, { text: plain('sqlite'), value: '1' }] }],
    },
    { type: 'input', block_id: 'pml:abcde:3:0:other', optional: true, label: plain('Other'), element: { type: 'plain_text_input', action_id: 'text' } },
    {
      type: 'actions', block_id: 'pml:abcde:3:of:1',
      elements: [
        { type: 'button', action_id: 'send', text: plain('Send'), value: 'yes' },
        { type: 'button', action_id: 'reason', text: plain('Why not'), value: 'no' },
      ],
    },
  ],
});
say({ sent: sent.ts, channel: sent.channel });
