package console

import "flag"

var all = flag.Bool("browser.all", false, "run what takes long, too")
