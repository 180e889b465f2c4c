"""Tests the page of `drun check --html` in a browser: it loads nothing, reports no error, and shows everything."""
import os
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

import browser

PAGE = os.environ.get("DRUN_CHECK_PAGE", "check-page")
WIDE, NARROW = (1160, 1400), (390, 844)

# Host names, labels and figures that extend beyond their drawing, or would be cut off there.
OUTSIDE = """[...document.querySelectorAll('svg text')].filter(text => {
  const t = text.getBoundingClientRect(), s = text.closest('svg').getBoundingClientRect(), slack = 4;
  return t.left < s.left - slack || t.right > s.right + slack || t.top < s.top - slack || t.bottom > s.bottom + slack;
}).map(text => text.closest('svg').getAttribute('class') + ': ' + text.textContent)"""

# Elements that are wider than their place and can't be scrolled to.
CUT = """[...document.querySelectorAll('main *')].filter(e => !e.closest('svg') && !e.closest('details:not([open])') &&
  !e.classList.contains('scroll') && e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 &&
  !e.querySelector('.scroll')).map(e => e.tagName + ': ' + e.textContent)"""
OUT_OF_CHART = """[...document.querySelectorAll('svg.plot text')].filter(text => {
  const t = text.getBoundingClientRect(), s = text.closest('.scroll').getBoundingClientRect();
  return t.width > 0 && (t.left < s.left - 1 || t.right > s.right + 1);
}).map(text => text.textContent)"""


def colors(png):
    """Returns the number of different bytes in the pixel data; a blank page has a handful."""
    data, at, packed = png, 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IDAT":
            packed += data[at + 8:at + 8 + size]
        at += size + 12
    return len(set(zlib.decompress(packed)))


class CheckPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory(prefix="drun-page-"))
        cls.browser = cls.enterClassContext(browser.Browser())

    def show(self, name, n_hosts, size=WIDE, dark=False):
        path = os.path.join(self.folder, f"{name}-{n_hosts}.html")
        with open(path, "wb") as file:
            subprocess.run([PAGE, name, str(n_hosts), "html"], stdout=file, check=True, timeout=20)
        self.browser.open(path, *size, dark=dark)
        self.assertEqual(self.browser.complaints(), [])
        self.assertEqual([url for url in self.browser.requests() if not url.startswith("data:")], [f"file://{path}"])
        overflow = self.browser.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        self.assertLessEqual(overflow, 0, "the page is wider than the window")

    def test_every_host_and_every_pair_is_there(self):
        for n in (2, 4, 16):
            with self.subTest(hosts=n):
                self.show("healthy", n)
                self.assertEqual(self.browser.count("#hosts tr.row"), n)
                self.assertEqual(self.browser.count("#bandwidth rect.c"), n * (n - 1))
                self.assertEqual(self.browser.count("#latency rect.c"), n * (n - 1))
                self.assertEqual(self.browser.count("#topology .links line"), n * (n - 1) // 2)
                self.assertEqual(self.browser.count("#topology .host"), n)
                self.assertEqual(self.browser.count("#findings article"), 0)
                self.assertGreater(self.browser.count("#cost .spot"), 10)
                self.assertEqual(self.browser.evaluate(OUTSIDE), [])
                self.assertGreater(colors(self.browser.screenshot()), 100)

    def test_what_is_wrong_stands_out(self):
        self.show("one-slow", 4)
        self.assertEqual(self.browser.evaluate("document.querySelector('h1').textContent"), "Ready with warnings")
        self.assertEqual(self.browser.count("#findings article.warn"), 1)
        self.assertEqual(self.browser.count("#findings article"), 1)
        self.assertIn("ssh gpu3 ethtool enp3s0", self.browser.evaluate("document.body.innerText"))
        self.assertEqual(self.browser.count("#bandwidth rect.c.h4"), 6)  # to and from the slow host
        self.assertEqual(self.browser.count("#topology line.k.h4"), 3 + 1)  # and the legend's
        self.assertEqual(self.browser.count("#topology .host.warn"), 1)
        self.assertEqual(self.browser.evaluate("document.querySelector('#topology .host.warn .sign').textContent"), "!")
        # The color of a slow cell differs from that of a good one, and its figure is bold.
        fill = "getComputedStyle(document.querySelector('#bandwidth rect.%s')).fill"
        self.assertNotEqual(self.browser.evaluate(fill % "h1"), self.browser.evaluate(fill % "h4"))
        weight = "getComputedStyle(document.querySelector('#bandwidth text.v.h4')).fontWeight"
        self.assertEqual(self.browser.evaluate(weight), "700")

    def test_notes_are_folded_and_codes_lead_to_what_they_mean(self):
        self.show("one-slow", 4)
        visible = "document.querySelector('#notes article').checkVisibility()"
        self.assertFalse(self.browser.evaluate(visible))
        self.browser.evaluate("document.querySelector('#notes summary').click()")
        self.assertTrue(self.browser.evaluate(visible))
        self.assertEqual(self.browser.evaluate(
            "[...document.querySelectorAll('a[href]')].filter(a => !document.querySelector(a.getAttribute('href'))).length"), 0)
        self.browser.evaluate("document.querySelector('#findings .code a').click()")
        self.assertEqual(self.browser.evaluate("document.querySelector(':target').textContent"), "link-slow")

    def test_what_is_compared_stands_side_by_side(self):
        edges = """[...document.querySelectorAll('.evidence table')].map(t => t.getBoundingClientRect()).map(r => [r.left, r.top])"""
        self.show("one-slow", 4)
        (left, top), (other_left, other_top) = self.browser.evaluate(edges)
        self.assertEqual(top, other_top)
        self.assertLess(left, other_left)
        self.show("one-slow", 4, size=NARROW)
        (left, top), (other_left, other_top) = self.browser.evaluate(edges)
        self.assertLess(top, other_top)
        self.assertEqual(left, other_left)

    def test_many_hosts(self):
        self.show("troubled", 64)
        self.assertEqual(self.browser.count("#hosts tr.row"), 64)
        self.assertEqual(self.browser.evaluate("document.querySelector('#hosts tr.row').classList.contains('bad')"), True)
        measured = self.browser.count("#bandwidth rect.c")
        self.assertGreater(measured, 64 * 4)
        self.assertEqual(self.browser.count("#latency rect.c"), measured)
        # Beyond 16 hosts marks replace the figures: none on good cells, one on every bad cell.
        bad = self.browser.count("#bandwidth .map rect.h2, #bandwidth .map rect.h3, #bandwidth .map rect.h4, "
                                 "#bandwidth .map rect.h5")
        self.assertGreater(bad, 0)
        self.assertEqual(self.browser.count("#bandwidth .map .m"), bad)
        self.assertEqual(self.browser.evaluate(OUTSIDE), [])

    def test_hosts_that_can_not_be_reached(self):
        self.show("one-unreachable", 4)
        self.assertEqual(self.browser.count("#hosts tr.row.bad"), 1)
        self.assertEqual(self.browser.count("#bandwidth rect.c"), 3 * 2)
        self.show("nothing-reachable", 3)
        self.assertEqual(self.browser.count("#hosts tr.row.bad"), 3)
        self.assertEqual(self.browser.count("#bandwidth"), 0)
        self.assertEqual(self.browser.evaluate("document.querySelector('h1').textContent"), "Not ready")

    def test_what_hosts_say_stays_text(self):
        self.show("hostile", 3)
        self.assertEqual(self.browser.count("script, img, [onload], [onerror]"), 0)
        self.assertIn("<script>alert(1)</script>", self.browser.evaluate("document.body.textContent"))

    def test_dark_and_light(self):
        background = "getComputedStyle(document.body).backgroundColor"
        self.show("troubled", 16)
        light = self.browser.evaluate(background)
        self.show("troubled", 16, dark=True)
        dark = self.browser.evaluate(background)
        self.assertNotEqual(light, dark)
        self.assertGreater(colors(self.browser.screenshot()), 100)

    def test_a_narrow_window(self):
        for name, n in (("one-slow", 4), ("troubled", 16), ("uneven-pair", 2), ("one-unreachable", 4)):
            with self.subTest(page=name):
                self.show(name, n, size=NARROW)
                # Text and commands wrap; only drawings scroll.
                self.assertEqual(self.browser.evaluate(CUT), [])
                self.assertEqual(self.browser.evaluate(OUT_OF_CHART), [])


if __name__ == "__main__":
    if not browser.find():
        print("no chromium: apt-get install chromium")
        sys.exit(77)
    unittest.main(verbosity=2)
