// Drives a page of `fastprof report`: node viewer.mjs report PAGE WIDTH HEIGHT STEPS.  STEPS is JSON, a list of
//   {"value": EXPRESSION}      the value is printed
//   {"click": EXPRESSION}      the mouse, at [x, y] of the window; "button": "right" is another one
//   {"move": EXPRESSION}       the mouse, to [x, y]
//   {"drag": EXPRESSION}       from [x, y, ...] to [..., x, y]
//   {"keys": ["/", "Enter"]}   the keyboard
//   {"type": TEXT}             text into the focused element
//   {"picture": FILE}
// Returns {"values": [...], "said": [...], "requests": [...]}: also the page's log and its network requests.
import {writeFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {pathToFileURL} from 'node:url';
import {inKeptPage} from './browser.mjs';

export default (file, width, height, steps) => inKeptPage(async page => {
  const metrics = {width: Number(width), height: Number(height), deviceScaleFactor: 1, mobile: false};
  await page.send('Emulation.setDeviceMetricsOverride', metrics);
  await page.before(`window.refused = [];
    document.addEventListener('securitypolicyviolation', event => window.refused.push(event.blockedURI));`);
  await page.open(pathToFileURL(resolve(file)).href);
  await page.until('document.documentElement.dataset.ready');
  const values = [];
  const painted = () => page.value('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))');
  await painted();
  for (const step of JSON.parse(steps)) {
    if ('value' in step) values.push(await page.value(step.value));
    else if ('click' in step) {
      const [x, y] = await page.value(step.click);
      await page.send('Input.dispatchMouseEvent', {type: 'mouseMoved', x, y});
      for (const type of ['mousePressed', 'mouseReleased'])
        await page.send('Input.dispatchMouseEvent', {type, x, y, button: step.button || 'left', clickCount: 1});
    } else if ('move' in step) {
      const [x, y] = await page.value(step.move);
      for (const by of [1, 0]) await page.send('Input.dispatchMouseEvent', {type: 'mouseMoved', x: x + by, y});
    } else if ('drag' in step) {
      const [x, y, toX, toY] = await page.value(step.drag);
      const mouse = (type, x, y) => page.send('Input.dispatchMouseEvent', {type, x, y, button: 'left', clickCount: 1});
      await mouse('mousePressed', x, y);
      for (const part of [0.5, 1]) await mouse('mouseMoved', x + (toX - x) * part, y + (toY - y) * part);
      await mouse('mouseReleased', toX, toY);
    } else if ('keys' in step)
      for (const key of step.keys) {
        const text = key === 'Enter' ? '\r' : key.length === 1 ? key : undefined;
        await page.send('Input.dispatchKeyEvent', {type: 'keyDown', key, code: key, text});
        await page.send('Input.dispatchKeyEvent', {type: 'keyUp', key, code: key});
      }
    else if ('type' in step) await page.send('Input.insertText', {text: step.type});
    else {
      const {data} = await page.send('Page.captureScreenshot', {format: 'png'});
      writeFileSync(step.picture, Buffer.from(data, 'base64'));
    }
    await painted();
  }
  const requests = await page.value('performance.getEntriesByType("resource").map(entry => entry.name)');
  return {values, said: [...page.said], requests};
});
